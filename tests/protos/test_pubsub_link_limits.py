"""Bounds of a link: long lines, silence, incomplete input (pubsub.md 4.5), with a simulated clock."""

import pytest

from protos.pubsub import Have, LinkConnection, LinkLimits, Problem
from protos.types import PeerError
from tests.protos.feeding import assert_over
from tests.protos.pubsub_samples import link_error_of, link_events_of, link_outcome

TIGHT = LinkLimits(max_line_bytes=80)
LATE = (b"BEAT\n", b"x")  # a whole line and a piece: none of it may count


# --- lines too long


@pytest.mark.parametrize("chunk_bytes", [1, 7, 80, 81, 1000])
def test_4_5_a_line_may_be_so_long_and_no_longer(chunk_bytes: int) -> None:
    good = b"ENTRY s 0 1 a " + b"x" * 66 + b"\n"
    for extra, wanted in ((b"", None), (b"!", "line_too_long"), (b"!" * 200, "line_too_long")):
        wire = good + good.replace(b" 1 ", b" 2 ")[:-1] + extra + b"\n"
        chunks = [wire[at : at + chunk_bytes] for at in range(0, len(wire), chunk_bytes)]
        events, reason = link_outcome(TIGHT, chunks)
        assert reason == wanted
        assert [event.count for event in events] == [1 if wanted else 2]


def test_4_5_only_entries_may_be_longer_than_64_kib() -> None:
    assert link_events_of(b"ENTRY s 0 1 a " + b"x" * 70_000 + b"\n")[0].count == 1
    assert link_error_of(b"ERROR " + b"x" * 70_000 + b"\n") == "line_too_long"
    assert link_error_of(b"HAVE 1 s 0 " + b"s/0:1-2," * 9_000 + b"s/0:1-2\n") == "line_too_long"
    assert link_events_of(b"ERROR " + b"x" * (65_536 - 6) + b"\n") == [Problem(b"x" * 65_530)]


def test_4_5_a_line_without_end_is_held_up_to_its_bound_and_no_further() -> None:
    link = LinkConnection(TIGHT, 0.0)
    assert list(link.receive(b"x" * 80, 0.0)) == []
    assert link.buffered == 80
    with pytest.raises(PeerError, match="line_too_long"):
        list(link.receive(b"x", 0.0))
    assert_over(link, LATE)


def test_4_5_a_large_entry_in_small_pieces_takes_time_in_proportion() -> None:
    # Copying all held bytes for each piece would move 1 TB.
    link = LinkConnection(LinkLimits(), 0.0)
    text = b"y" * 1_000
    assert list(link.receive(b"ENTRY s 0 1 a ", 0.0)) == []
    for _ in range(50_000):
        assert not list(link.receive(text, 0.0))
    (event,) = link.receive(b"\n", 0.0)
    assert len(event.block) == len(b"SEND a \n") + 50_000_000


# --- time


def test_4_5_neighbour_silent_for_15_s_is_closed() -> None:
    link = LinkConnection(LinkLimits(), 100.0)
    assert link.deadline() == 115.0
    list(link.receive(b"BEAT\n", 110.0))
    assert link.deadline() == 125.0
    assert list(link.on_time(124.5)) == []
    with pytest.raises(PeerError, match="silent"):
        list(link.on_time(125.0))
    assert_over(link, LATE)


def test_4_5_a_large_entry_that_is_on_its_way_is_no_silence() -> None:
    link = LinkConnection(LinkLimits(), 0.0)
    list(link.receive(b"ENTRY s 0 1 a ", 1.0))
    for now in range(2, 31):
        list(link.receive(b"x", float(now)))
        assert link.deadline() == min(now + 15.0, 31.0)
    with pytest.raises(PeerError, match="request_timeout"):
        list(link.on_time(31.0))
    assert_over(link, LATE)


def test_4_5_a_line_that_stops_halfway_is_silence_first() -> None:
    link = LinkConnection(LinkLimits(), 0.0)
    list(link.receive(b"BEA", 1.0))
    with pytest.raises(PeerError, match="silent"):
        list(link.on_time(16.0))


def test_4_5_a_continued_list_must_end_in_time() -> None:
    link = LinkConnection(LinkLimits(), 0.0)
    list(link.receive(b"BEAT\nHA", 1.0))
    for now in range(2, 31):
        list(link.receive(b"VE 1 s 0 s/0:1-2,\nHA", float(now)))
    assert link.deadline() == 31.0
    assert [type(event) for event in link.receive(b"VE 1 s 0 s/0:3-4\nB", 30.5)] == [Have]
    assert link.deadline() == 45.5
    assert list(link.on_time(45.0)) == []


def test_4_5_restart_clock_restarts_all_time_limits() -> None:
    link = LinkConnection(LinkLimits(), 0.0)
    list(link.receive(b"BE", 1.0))
    link.restart_clock(100.0)
    assert link.deadline() == 115.0
    list(link.receive(b"A", 110.0))
    list(link.receive(b"T", 120.0))
    assert link.deadline() == 130.0
