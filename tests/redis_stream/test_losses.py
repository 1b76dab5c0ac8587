"""Test that entries trimmed unread are reported, and nothing else is."""

from __future__ import annotations

import pytest

from services.redis_stream.losses import lost, missed, shortened
from services.redis_stream.schema import Kind
from services.redis_stream.stretches import Stream, Stretch, cut
from services.store.catalogue.reading import BEGINNING, StreamReader, StreamState
from tests.redis_stream.streams import KEY, add, numbered
from tests.servers import Server


def state(server: Server) -> StreamState | None:
    with StreamReader(server.url) as reading:
        return reading.state(KEY)


def of(kind: Kind, start: str, end: str = "10-0") -> Stream:
    return Stream(kind, KEY, start, end)


@pytest.mark.parametrize(
    ("trim", "start", "why"),
    [
        ("MAXLEN 5", BEGINNING, ""),
        (
            "MAXLEN 5",
            "3-0",
            "s was read up to 3-0, but now begins at 6-0: the entries in between were trimmed",
        ),
        ("MAXLEN 5", "6-0", ""),
        ("MAXLEN 5", "5-18446744073709551615", ""),  # no id in between
        ("MAXLEN 10", "0-5", ""),  # nothing was ever trimmed
        (
            "MAXLEN 0",
            "3-0",
            "s was read up to 3-0, but now is empty up to 10-0: the entries in between were trimmed",
        ),
        ("MAXLEN 0", "10-0", ""),
        (
            "MINID 4",
            "11-0",
            "s was read up to 11-0, but now ends at 10-0: it was replaced or restored",
        ),
    ],
)
def test_before_it_is_planned(server: Server, trim: str, start: str, why: str) -> None:
    add(server, numbered(10))
    server.call("XTRIM", KEY, *trim.split())
    for kind in (Kind.ENTRIES, Kind.SAMPLES):
        told = lost(of(kind, start), state(server))
        assert told.startswith(why)
        assert bool(told) == bool(why)
    assert lost(of(Kind.DEAD, start), state(server)) == ""


def test_entries_that_are_taken_out_in_the_middle_are_no_loss(server: Server) -> None:
    add(server, numbered(10))
    server.call("XDEL", KEY, "5-0", "6-0", "7-0")
    assert lost(of(Kind.ENTRIES, "4-0"), state(server)) == ""
    assert lost(of(Kind.ENTRIES, "6-0"), state(server)) == ""


def test_a_stream_that_is_gone_or_shorter(server: Server) -> None:
    assert "no longer exists" in lost(of(Kind.ENTRIES, "4-0"), None)
    assert lost(of(Kind.ENTRIES, BEGINNING), None) == ""
    assert "no longer exists" in shortened(of(Kind.ENTRIES, BEGINNING), None)
    add(server, numbered(9))
    assert shortened(of(Kind.ENTRIES, BEGINNING), state(server)).endswith("or restored from an older state")
    add(server, [("10-0", 1)])
    assert shortened(of(Kind.ENTRIES, BEGINNING), state(server)) == ""
    assert shortened(of(Kind.DEAD, BEGINNING, "99-0"), None) == ""


def read(server: Server, stretches: list[Stretch], meanwhile: tuple[object, ...] = ()) -> tuple[int, str]:
    """Return the number of entries read and the first reported loss; `meanwhile` is called after the first page."""
    number = 0
    with StreamReader(server.url) as reading:
        for stretch in stretches:
            for page in reading.pages(KEY, stretch.start, stretch.end, 10, is_watched=True):
                if why := missed(stretch, page):
                    return number, why
                number += len(page.entries)
                if meanwhile:
                    server.call(*meanwhile)
                    meanwhile = ()
    return number, ""


def planned(server: Server, start: str = BEGINNING) -> list[Stretch]:
    with StreamReader(server.url) as reading:
        return cut(reading, Stream(Kind.ENTRIES, KEY, start, "100-0"), 40, 3)


def test_between_planning_and_reading(server: Server) -> None:
    add(server, numbered(100))
    behind, all_of_it = planned(server, "5-0"), planned(server)
    assert len(all_of_it) > 1
    assert read(server, behind) == (95, "")
    server.call("XTRIM", KEY, "MAXLEN", 95)
    assert read(server, behind) == (95, "")
    server.call("XTRIM", KEY, "MAXLEN", 94)
    assert read(server, behind)[1].endswith("but now begins at 7-0: earlier entries were trimmed")
    assert read(server, all_of_it) == (94, "")  # from its beginning
    server.call("XTRIM", KEY, "MAXLEN", 5)
    assert "were trimmed" in read(server, all_of_it)[1]
    server.call("XTRIM", KEY, "MAXLEN", 0)
    assert "but now is empty: earlier entries were trimmed" in read(server, behind)[1]
    server.call("DEL", KEY)
    assert "no longer exists" in read(server, all_of_it)[1]
    add(server, numbered(5))
    assert "now ends at 5-0" in read(server, all_of_it)[1]


def test_while_it_is_read(server: Server) -> None:
    """Check a loss during reading: the next page was already requested."""
    add(server, numbered(100))
    stretches = planned(server, "5-0")
    assert read(server, stretches, ("XTRIM", KEY, "MAXLEN", 80)) == (95, "")
    number, why = read(server, planned(server, "25-0"), ("XTRIM", KEY, "MAXLEN", 10))
    assert number < 75
    assert "were trimmed" in why


def test_a_stream_that_goes_away_once_it_was_read_is_no_loss(server: Server) -> None:
    add(server, numbered(10))
    (stretch,) = [Stretch(of(Kind.ENTRIES, BEGINNING), BEGINNING, "10-0")]
    assert read(server, [stretch], ("DEL", KEY)) == (10, "")
