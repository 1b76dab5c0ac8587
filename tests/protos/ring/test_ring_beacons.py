"""Beacons: cut short, at their limits, and of other kinds (ring.md 1.2, 3)."""

import pytest

from protos.ring import (
    MAX_BEACON,
    MAX_NAMES,
    Beacon,
    Find,
    Open,
    encode_beacon,
    host_of,
    parse_beacon,
)
from protos.types import LocalError, PeerError

OPEN = Open(7, b"10.0.0.9:8085", b"10.0.0.1:8085", b"8085")
FIND = Find(7, b"10.0.0.9:8085")
BEACONS = (OPEN, FIND)


def reason_of(datagram: bytes) -> str:
    with pytest.raises(PeerError) as caught:
        parse_beacon(datagram)
    return caught.value.reason


def opened(group: int, *names: bytes) -> bytes:
    """Encode an OPEN without any check."""
    return b"OPEN" + group.to_bytes(2, "big") + bytes(map(len, names)) + b"".join(names)


@pytest.mark.parametrize("beacon", BEACONS)
def test_a_beacon_that_is_cut_short_is_refused_wherever_it_is_cut(beacon: Beacon) -> None:
    datagram = encode_beacon(beacon)
    for size in range(len(datagram)):
        assert reason_of(datagram[:size]) == ("beacon_unknown" if size < 4 else "beacon_truncated")


@pytest.mark.parametrize("beacon", BEACONS)
def test_nothing_may_follow_the_names(beacon: Beacon) -> None:
    datagram = encode_beacon(beacon)
    for rest in (b"\0", b"x", datagram, bytes(MAX_BEACON - len(datagram))):
        assert reason_of(datagram + rest) == "beacon_trailing"
    assert reason_of(datagram + bytes(MAX_BEACON)) == "beacon_too_long"
    assert reason_of(datagram + bytes(65_000)) == "beacon_too_long"


@pytest.mark.parametrize("kind", [b"open", b"find", b"LOOP", b"USER", b"OPEM", b"\0\0\0\0", b"A\0\0\0"])
def test_unknown_beacon_kinds_are_refused(kind: bytes) -> None:
    for beacon in BEACONS:
        assert reason_of(kind + encode_beacon(beacon)[4:]) == "beacon_unknown"


def test_groups_are_1_to_65535() -> None:
    """Check that groups are 1 to 65535 (3.3)."""
    for group in (1, 255, 256, 65535):
        for beacon in (Open(group, b"l", b"n", b"1"), Find(group, b"l")):
            assert parse_beacon(encode_beacon(beacon)) == beacon
    for group in (0, -1, 65536):
        with pytest.raises(LocalError):
            encode_beacon(Find(group, b"l"))
    assert reason_of(b"FIND\0\0\x01l") == "group_zero"
    assert reason_of(opened(0, b"l", b"n", b"1")) == "group_zero"


def test_three_names_have_at_most_470_octets_together() -> None:
    """Check that three names have at most 470 octets together (1.2)."""
    for service in (b"8085", b"s" * 100):
        rest = MAX_NAMES - len(service)
        for leader in (rest - 254, 220, rest // 2):
            longest = Open(1, b"l" * leader, b"n" * (rest - leader), service)
            assert parse_beacon(encode_beacon(longest)) == longest
            assert len(encode_beacon(longest)) < MAX_BEACON
            too_long = opened(1, longest.leader, longest.node + b"n", service)
            assert reason_of(too_long) == "beacon_too_long"


def test_no_name_is_empty() -> None:
    for names in ((b"", b"n", b"1"), (b"l", b"", b"1"), (b"l", b"n", b""), (b"", b"", b"")):
        assert reason_of(opened(1, *names)) == "empty_name"
    assert reason_of(b"FIND\0\1\0") == "empty_name"


@pytest.mark.parametrize("node", [b":", b":8085", b" :1", b"a b", b"a\0:1", b"\x7f", b"\xc3\xb1:1", b"a\n"])
def test_node_name_without_a_host_is_refused(node: bytes) -> None:
    """Check that a node name without a host is refused (1.2)."""
    assert reason_of(opened(1, b"l", node, b"8085")) == "bad_node"


@pytest.mark.parametrize(
    "service", [b"0", b"00000", b"65536", b"99999", b"000001", b"1" * 99, b"a b", b"\0", b"1\n"]
)
def test_a_service_that_is_no_port_and_no_name_is_refused(service: bytes) -> None:
    """Check that a service that is neither a port nor a name is refused (3.1)."""
    assert reason_of(opened(1, b"l", b"n", service)) == "bad_service"


def test_leader_name_may_be_any_octets() -> None:
    for leader in (b"\0", b":", bytes(range(255))):
        assert parse_beacon(encode_beacon(Find(1, leader))) == Find(1, leader)


def test_host_of_a_node_name() -> None:
    """Check the host of a node name (1.2, 3.1)."""
    assert [host_of(each) for each in (b"10.0.0.1:8085", b"node.example.org", b"h:1:2")] == [
        b"10.0.0.1",
        b"node.example.org",
        b"h",
    ]


@pytest.mark.parametrize(
    "beacon",
    [
        Open(1, b"", b"n", b"1"),
        Open(1, b"l", b":1", b"1"),
        Open(1, b"l", b"n", b"0"),
        Open(1, b"l" * 234, b"n" * 233, b"8085"),
        Find(1, b""),
        Find(1, b"l" * 256),
    ],
)
def test_encoding_an_invalid_beacon_is_a_local_error(beacon: Beacon) -> None:
    with pytest.raises(LocalError):
        encode_beacon(beacon)
