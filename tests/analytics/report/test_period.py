"""Test how the gold tables of a period are read."""

from __future__ import annotations

import random

from services.analytics.hours import Span, later
from services.analytics.report.figures import make
from services.analytics.report.period import find_span, read_tables
from tests.analytics.report.conftest import Write
from tests.analytics.report.rows import Rows, hour, some, tables
from tests.analytics.report.test_figures import OF

NOW = hour(0)


def test_each_list_has_its_first_rows_and_its_length(gold: Write) -> None:
    names = tuple(f"name {number}" for number in range(7))
    rows = some(random.Random(5), 30, names)
    found = read_tables(gold(rows), NOW, 24)
    recent = [own for at, own in rows.items() if at > hour(24)]
    keys = ("domain", "queue", "reason", "pattern", "fingerprint")
    groups = {tuple(row[key] for key in keys) for own in recent for row in own["failures"]}
    lengths = {"deaths.by_origin": 7, "failures": len(groups), "changes.top": 7 * 24, "queues": 7 * 2}
    assert {name: found.lengths[name] for name in lengths} == lengths
    assert {name: len(found.lists[name]) for name in lengths} == {
        **lengths,
        "failures": 20,
        "changes.top": 20,
    }
    assert sorted(found.hours) == [hour(back) for back in reversed(range(24))]


def test_output_without_rows_gives_an_empty_report(gold: Write) -> None:
    assert make(read_tables(gold({}), NOW, 2), OF) == make(tables({}, 2), OF)
    output = gold(some(random.Random(5), 3, ("a",)))
    assert make(read_tables(output, later(NOW, -40), 2), OF) == make(tables({}, 2), OF)


def of_hours(*backs: int) -> Rows:
    """Return rows of the tables traffic and deaths in turn, in these hours, counted from NOW."""
    known = some(random.Random(5), max(*backs, 0) + 1, ("a",))
    found: Rows = {}
    for number, back in enumerate(backs):
        name = ("traffic", "deaths")[number % 2]
        found[hour(back)] = {name: known[hour(max(back, 0))][name]}
    return found


def test_hour_that_has_not_begun_is_left_out(gold: Write) -> None:
    """Check that the hour of a letter ahead of the store's clock counts only once it has begun."""
    output = gold(of_hours(24, 23, 0, -1, -9))
    assert find_span(output, NOW, 24) == Span(hour(23), NOW, 24, (hour(23), NOW))
    assert find_span(output, hour(30), 24) == Span("", "", 24)


def test_period_ends_with_the_newest_hour_however_old(gold: Write) -> None:
    output = gold(of_hours(2000, 2001, 2030))
    assert find_span(output, NOW, 24).known == (hour(2001), hour(2000))
    output = gold(of_hours(50, 40, 30))
    assert find_span(output, NOW, 24).known == (hour(50), hour(40), hour(30))
    assert find_span(output, NOW, 10).known == (hour(30),)
    assert find_span(output, NOW, 168).known == (hour(50), hour(40), hour(30))
