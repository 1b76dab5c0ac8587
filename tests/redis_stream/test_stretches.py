"""Test the cutting of streams into stretches: no entry is between two of them or in both, for any ids."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.redis_stream.schema import Kind
from services.redis_stream.stretches import MOST_ASKED, Stream, Stretch, cut
from services.store.catalogue.reading import BEGINNING, StreamReader
from services.store.model.dead_letter import parse_id
from tests.redis_stream.streams import KEY, add
from tests.servers import Server

LAST = (1 << 64) - 1
Id = tuple[int, int]


@st.composite
def bunches(draw: st.DrawFn) -> list[Id]:
    """Return entries at regular distances, in bunches, within one ms, or far apart."""
    found: set[Id] = set()
    for _ in range(draw(st.integers(1, 5))):
        ms, number = draw(st.sampled_from([1, 1000, 10**6, 10**12, 2**63])), draw(st.integers(0, 1000))
        step = draw(st.sampled_from([(0, 1), (0, 7), (1, 0), (10, 3), (10**5, 0)]))
        for place in range(draw(st.integers(1, 120))):
            found.add((ms + place * step[0], number + place * step[1]))
    if draw(st.booleans()):
        found |= {(LAST, LAST - 1), (0, 1)}
    return sorted(found)


def cut_up(server: Server, start: str, end: str, rows: int, parts: int) -> list[Stretch]:
    with StreamReader(server.url) as reading:
        return cut(reading, Stream(Kind.ENTRIES, KEY, start, end), rows, parts)


def ids_in(stretch: Stretch, ids: list[Id]) -> list[Id]:
    return [one for one in ids if parse_id(stretch.start) < one <= parse_id(stretch.end)]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bunches(), st.integers(1, 60), st.integers(1, 8), st.data())
def test_no_gap_and_no_overlap(
    server: Server, ids: list[Id], rows: int, parts: int, data: st.DataObject
) -> None:
    server.call("DEL", KEY)
    add(server, [(f"{ms}-{number}", 1) for ms, number in ids])
    places = st.one_of(st.sampled_from(ids), st.tuples(st.integers(0, LAST), st.integers(0, LAST)))
    first, last = sorted((data.draw(places), data.draw(places)))
    start = BEGINNING if data.draw(st.booleans()) else f"{first[0]}-{first[1]}"
    found = cut_up(server, start, f"{last[0]}-{last[1]}", rows, parts)
    wanted = [one for one in ids if parse_id(start) < one <= last]
    assert [one for stretch in found for one in ids_in(stretch, ids)] == wanted
    assert all(before.end == after.start for before, after in pairwise(found))
    assert all(ids_in(stretch, ids) for stretch in found)
    if found:
        assert parse_id(found[0].start) >= parse_id(start)
        assert parse_id(found[-1].end) == last


@pytest.mark.parametrize(
    "ids",
    [
        [(10**12 + 7 * place, 0) for place in range(6000)],
        [(10**12, place) for place in range(6000)],
        [(10**12 + place // 100, place % 100) for place in range(6000)],
        [(10**12 + place + (place // 1000) * 10**7, 0) for place in range(6000)],
        [(1, 0), *((10**12 + place, 0) for place in range(5998)), (2**63, 0)],
        [
            *((10**9 + place, 0) for place in range(5000)),
            *((10**12 + 10**6 * place, 0) for place in range(1000)),
        ],
    ],
    ids=["regular", "one ms", "by hundreds", "in bunches", "far ends", "dense and thin"],
)
def test_they_are_about_as_long_as_each_other(server: Server, ids: list[Id]) -> None:
    add(server, [(f"{ms}-{number}", 1) for ms, number in ids])
    end = f"{ids[-1][0]}-{ids[-1][1]}"
    found = [len(ids_in(stretch, ids)) for stretch in cut_up(server, BEGINNING, end, 1000, 1)]
    assert sum(found) == len(ids)
    assert 4 <= len(found) <= 14
    assert max(found) <= 3000
    half = [one for one in ids if one > ids[3000]]
    found = [
        len(ids_in(stretch, ids)) for stretch in cut_up(server, f"{ids[3000][0]}-{ids[3000][1]}", end, 500, 4)
    ]
    assert sum(found) == len(half)
    assert 3 <= len(found) <= 20
    assert max(found) <= 1500


def test_what_is_short_is_one_stretch_and_may_be_more(server: Server) -> None:
    add(server, [(f"{ms}-0", 1) for ms in range(1000, 1100)])
    assert [(one.start, one.end) for one in cut_up(server, BEGINNING, "1099-0", 100, 1)] == [
        ("0-0", "1099-0")
    ]
    assert len(cut_up(server, BEGINNING, "1099-0", 100, 4)) in (3, 4, 5)
    assert [(one.start, one.end) for one in cut_up(server, "1050-0", "9999-0", 1000, 1)] == [
        (f"1050-{LAST}", "9999-0")
    ]


def test_what_has_no_entries_has_no_stretch(server: Server) -> None:
    assert cut_up(server, BEGINNING, "9-0", 10, 4) == []
    add(server, [("5-0", 1)])
    assert cut_up(server, BEGINNING, "4-0", 10, 4) == []
    assert cut_up(server, "5-0", "9-0", 10, 4) == []
    server.call("XDEL", KEY, "5-0")
    assert cut_up(server, BEGINNING, "9-0", 10, 4) == []


def test_few_questions_are_asked(server: Server) -> None:
    """Check the number of requests for unfavourable ids, to limit the load on the server."""
    ids = [(2**place, number) for place in range(60) for number in range(50)]
    add(server, [(f"{ms}-{number}", 1) for ms, number in ids])
    server.call("CONFIG", "RESETSTAT")
    assert sum(len(ids_in(each, ids)) for each in cut_up(server, BEGINNING, f"{2**60}-0", 10, 1)) == len(ids)
    calls = [line for name, line in server.info("commandstats").items() if "range" in name]
    assert sum(int(line.split("calls=")[1].split(",")[0]) for line in calls) <= MOST_ASKED + 8
