"""The file .rqprc (rqp_cast.md 1.1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protos.rqp_cast import REQUEST_PORT, BadLine, Host, parse_rqprc

NAMES = ["10.0.0.2", "a", "queue-2.example.org", "example.org.", "_rqp._udp.example", "1a", "x" * 63]
hosts = st.builds(Host, st.sampled_from(NAMES), st.integers(1, 65_535) | st.just(REQUEST_PORT))


def test_a_line_names_a_machine() -> None:
    text = "# ours\n\nalpha\n  10.0.0.2:11400  # the old one\r\nbeta:1#x\n   #gamma\n"
    found = parse_rqprc(text)
    assert found.hosts == (Host("alpha", REQUEST_PORT), Host("10.0.0.2", 11400), Host("beta", 1))
    assert found.bad_lines == ()


def test_an_empty_file_names_none() -> None:
    for text in ("", "\n\n", "# nobody yet", "\ufeff"):
        assert parse_rqprc(text).hosts == ()
        assert parse_rqprc(text).bad_lines == ()


def test_a_mark_of_the_editor_is_not_part_of_the_first_name() -> None:
    assert parse_rqprc("\ufeffalpha\n").hosts == (Host("alpha"),)


def test_a_machine_is_asked_once_on_each_port() -> None:
    found = parse_rqprc(f"b\na\nb\nb:{REQUEST_PORT}\nb:5\n")
    assert found.hosts == (Host("b"), Host("a"), Host("b", 5))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("alpha beta", "only one machine may stand on a line"),
        ("alpha:", "a port is a number from 1 to 65535"),
        ("alpha:0", "a port is a number from 1 to 65535"),
        ("alpha:65536", "a port is a number from 1 to 65535"),
        ("alpha:+1", "a port is a number from 1 to 65535"),
        ("alpha:\u0661", "a port is a number from 1 to 65535"),
        ("::1", "an IPv6 address: RQP/cast has room for IPv4 only"),
        ("[fe80::1]:11312", "an IPv6 address: RQP/cast has room for IPv4 only"),
        ("10.0.0", "not an IPv4 address"),
        ("10.0.0.256", "not an IPv4 address"),
        ("10.0.0.01", "not an IPv4 address"),
        (":11312", "neither a DNS name nor an IPv4 address"),
        ("-a", "neither a DNS name nor an IPv4 address"),
        ("a..b", "neither a DNS name nor an IPv4 address"),
        ("żółw", "neither a DNS name nor an IPv4 address"),
        ("\ufffd", "neither a DNS name nor an IPv4 address"),
        ("x" * 64, "neither a DNS name nor an IPv4 address"),
        (".".join(["x" * 49] * 6), "neither a DNS name nor an IPv4 address"),
    ],
)
def test_bad_line_is_reported_and_others_count(line: str, problem: str) -> None:
    found = parse_rqprc(f"alpha\n {line} \nbeta\n")
    assert found.hosts == (Host("alpha"), Host("beta"))
    assert found.bad_lines == (BadLine(2, line, problem),)


def test_every_bad_line_is_reported() -> None:
    assert [bad.number for bad in parse_rqprc("?\na\n\n!\x0b\nb\n:\n").bad_lines] == [1, 4, 6]


@given(st.lists(hosts, unique=True))
def test_a_host_parses_to_itself(chosen: list[Host]) -> None:
    found = parse_rqprc("".join(f"{host}\n" for host in chosen))
    assert (found.hosts, found.bad_lines) == (tuple(chosen), ())


@given(st.text(max_size=80))
def test_any_text_gives_hosts_that_parse_to_themselves(text: str) -> None:
    found = parse_rqprc(text)
    assert parse_rqprc("\n".join(map(str, found.hosts))).hosts == found.hosts
    assert all(0 < bad.number <= text.count("\n") + 1 for bad in found.bad_lines)


def test_another_protocol_has_another_port_that_need_not_be_named() -> None:
    """Check that another protocol has another default port: RQP/MCA has files of the same form."""
    text = f"one.example\ntwo.example:{REQUEST_PORT}\n"
    assert parse_rqprc(text, 11311).hosts == (Host("one.example", 11311), Host("two.example", REQUEST_PORT))
