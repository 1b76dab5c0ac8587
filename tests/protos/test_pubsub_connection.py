"""Line ends, long lines, runs, time, and the end of a connection (pubsub.md 1, 2.5), with a simulated clock."""

import pytest

from protos.pubsub import (
    MAX_RUN,
    Charset,
    Connection,
    Limits,
    Ping,
    Quit,
    Reason,
    Refused,
    Send,
    Subscribe,
    encode_send,
)
from protos.types import PeerError
from tests.protos.feeding import assert_over
from tests.protos.pubsub_samples import CRLF, LF, event_of, events_of, merged, outcome, reason_of

TIGHT = Limits(max_line_bytes=20)
PATIENT = Limits(max_line_bytes=20, request_timeout_s=32.0)  # exact in binary: sums can be compared
LINE = b"SEND x 4567890123456"  # 20 bytes
TOO_LONG = Reason.LINE_TOO_LONG
LATE = (b"PING\n", b"x", b"SEND x y\r\n")  # whole lines and a piece: none of it may count


# --- ends of lines (1.1)


def test_1_1_event_has_the_end_of_its_line() -> None:
    wire = b"SEND x a\nSEND x b\r\nSEND x c\r\nPING\r\nPING\nnonsense\r\n"
    assert events_of(wire) == [
        Send(b"SEND x a\n", 1, LF),
        Send(b"SEND x b\nSEND x c\n", 2, CRLF),
        Ping(CRLF),
        Ping(LF),
        Refused(Reason.UNKNOWN_VERB, CRLF),
    ]


@pytest.mark.parametrize(
    ("line", "eol"), [(b"PING\n", LF), (b"PING\r\n", CRLF), (b"SEND x a\r\n", CRLF), (b"", LF)]
)
def test_1_3_unfinished_line_is_answered_like_the_line_before_it(line: bytes, eol: bytes) -> None:
    source = Connection(Limits())
    list(source.receive(line + b"PIN", 0.0))
    assert list(source.receive_eof(0.0)) == [Refused(Reason.UNFINISHED, eol)]


# --- lines too long (1.2)


@pytest.mark.parametrize("eol", [LF, CRLF])
@pytest.mark.parametrize("chunk_bytes", [1, 2, 7, 19, 20, 21, 22, 1000])
def test_1_2_a_line_may_be_so_long_and_no_longer(eol: bytes, chunk_bytes: int) -> None:
    for extra in (0, 1, 2, 30):
        wire = LINE + b"!" * extra + eol + b"PING\n"
        chunks = [wire[at : at + chunk_bytes] for at in range(0, len(wire), chunk_bytes)]
        first = Refused(TOO_LONG, eol) if extra else Send(LINE + LF, 1, eol)
        assert outcome(TIGHT, chunks) == [first, Ping(LF)]


def test_1_2_the_end_does_not_count_even_half_of_it() -> None:
    source = Connection(TIGHT)
    assert list(source.receive(LINE + b"\r", 0.0)) == []
    assert list(source.receive(b"\n", 0.0)) == [Send(LINE + LF, 1, CRLF)]
    assert list(source.receive(LINE + b"\r", 0.0)) == []
    assert list(source.receive(b"x\n", 0.0)) == [Refused(TOO_LONG, LF)]


@pytest.mark.parametrize("charset", Charset)
def test_1_2_one_long_line_spoils_no_other_of_its_run(charset: Charset) -> None:
    limits = Limits(max_line_bytes=20, charset=charset)
    for eol in (LF, CRLF):
        wire = (LINE + eol) * 3 + LINE + b"!" + eol + (LINE + eol) * 2
        assert merged(events_of(wire, limits)) == [
            Send((LINE + LF) * 3, 3, eol),
            Refused(TOO_LONG, eol),
            Send((LINE + LF) * 2, 2, eol),
        ]


@pytest.mark.parametrize("piece", [b"x", b"SEND x ", b"\r", b"\xff" * 1000, b"SEND x 45678901234567890"])
def test_1_2_line_without_end_is_discarded(piece: bytes) -> None:
    source = Connection(TIGHT)
    for _ in range(300):
        assert list(source.receive(piece, 0.0)) == []
        assert source.buffered <= 21
    assert source.buffered == 1  # it may be half of a line end
    assert list(source.receive(b"\nPING\n", 0.0))[1:] == [Ping(LF)]


def test_1_2_a_long_line_in_single_bytes_takes_time_in_proportion() -> None:
    # Copying all held bytes for each byte would move 45 GB.
    source = Connection(Limits(max_line_bytes=2 << 20))
    line = b"SEND x " + bytes(300_000).replace(b"\0", b"y")
    for at in range(len(line)):
        assert not list(source.receive(line[at : at + 1], 0.0))
    assert list(source.receive(b"\n", 0.0)) == [Send(line + LF, 1, LF)]


def test_1_2_a_limit_below_any_verb_refuses_everything() -> None:
    assert reason_of(b"PING\n", Limits(max_line_bytes=3)) is TOO_LONG
    assert event_of(b"PING\n", Limits(max_line_bytes=4)) == Ping(LF)


# --- FIN (1.3)


@pytest.mark.parametrize("wire", [b"P", b"PING", b"PING\r", b"SEND x y", LINE * 5, b"\r"])
def test_1_3_a_line_cut_short_is_not_carried_out(wire: bytes) -> None:
    assert outcome(TIGHT, [b"PING\n" + wire]) == [Ping(LF), Refused(Reason.UNFINISHED, LF)]


def test_1_3_fin_between_lines_is_a_good_end() -> None:
    source = Connection(Limits())
    list(source.receive(b"PING\n", 0.0))
    assert list(source.receive_eof(0.0)) == []
    assert_over(source, LATE)


def test_2_2_input_after_quit_is_ignored() -> None:
    for wire in (b"QUIT\nSEND x y\n", b"QUIT\nSEND x"):
        source = Connection(Limits())
        assert list(source.receive(wire, 0.0)) == [Quit(LF)]
        assert_over(source, LATE)


# --- time (1.4)


@pytest.mark.parametrize("wire", [b"PING\n", LINE + CRLF, LINE + b"too long\r\n"])
def test_1_4_a_line_may_stay_unfinished_for_the_request_timeout(wire: bytes) -> None:
    for size in range(1, len(wire)):
        source = Connection(PATIENT)
        assert source.deadline() is None
        list(source.receive(wire[:size], 5.0))
        assert source.deadline() == 37.0
        assert list(source.on_time(36.5)) == []
        with pytest.raises(PeerError, match="request_timeout"):
            list(source.on_time(37.0))
        assert_over(source, LATE)


@pytest.mark.parametrize("line", [LINE, LINE * 5], ids=["good", "being thrown away"])
def test_1_4_the_timeout_counts_from_the_lines_first_byte(line: bytes) -> None:
    source = Connection(PATIENT)
    for place in range(len(line)):
        list(source.receive(line[place : place + 1], 1.0 + place / 128))
        assert source.deadline() == 33.0  # a single byte now and then does not help
    assert len(list(source.receive(b"\nPI", 20.0))) == 1
    assert source.deadline() == 52.0
    list(source.receive(b"N", 21.0))
    assert source.deadline() == 52.0
    list(source.receive(b"G\n", 22.0))
    assert source.deadline() is None


def test_1_4_restart_clock_restarts_the_time_limit() -> None:
    source = Connection(PATIENT)
    source.restart_clock(5.0)
    assert source.deadline() is None
    list(source.receive(b"PIN", 6.0))
    source.restart_clock(1_000.0)
    assert source.deadline() == 1_032.0
    assert list(source.on_time(1_000.0)) == []


def test_1_4_between_lines_a_client_may_be_idle_for_ever() -> None:
    source = Connection(PATIENT)
    list(source.receive(b"PING\n", 0.0))
    assert source.deadline() is None
    assert list(source.on_time(1e9)) == []
    assert list(source.receive(b"", 1e9)) == []
    assert list(source.receive(b"PING\n", 1e9)) == [Ping(LF)]


# --- runs (2.5)


def test_2_5_sends_in_a_row_are_one_event_whatever_their_tags() -> None:
    wire = encode_send(b"a", b"1") + encode_send(b"b", b"") + encode_send(b"a", b"SEND c x ")
    assert events_of(wire) == [Send(wire, 3, LF)]


@pytest.mark.parametrize("count", [MAX_RUN - 1, MAX_RUN, MAX_RUN + 1, 2 * MAX_RUN + 7])
@pytest.mark.parametrize("eol", [LF, CRLF])
def test_2_5_a_run_has_at_most_a_thousand(count: int, eol: bytes) -> None:
    sizes = [min(MAX_RUN, count - done) for done in range(0, count, MAX_RUN)]
    runs = events_of(encode_send(b"x", b"y", eol) * count)
    assert runs == [Send(b"SEND x y\n" * size, size, eol) for size in sizes]


def test_2_5_a_run_is_handed_out_without_waiting_for_the_unfinished_line_behind_it() -> None:
    source = Connection(Limits())
    wire = encode_send(b"x", b"y") * 3
    assert list(source.receive(wire[:-1], 0.0)) == [Send(wire[:18], 2, LF)]
    assert list(source.receive(wire[-1:], 0.0)) == [Send(wire[:9], 1, LF)]


def test_2_5_other_lines_and_bad_ones_end_a_run() -> None:
    one = encode_send(b"x", b"y")
    kinds = [type(event) for event in events_of(one * 2 + b"SUBSCRIBE 1 x\n" + one + b"SEND x\n" + one)]
    assert kinds == [Send, Subscribe, Send, Refused, Send]
