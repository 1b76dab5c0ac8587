"""Compare the report's document with sums in plain Python over the same rows."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from services.analytics.hours import span_of
from services.analytics.report.figures import Of, make
from services.store.report.report import MOST_OCTETS, Report, decode
from tests.analytics import expected
from tests.analytics.report.rows import HOSTILE, Rows, hour, some, tables

HOURS = 5
OF = Of(
    "r1",
    1_764_000_000_000,
    0.99,
    {
        "dead": {"read": 5, "archived": 4, "quarantined": 1, "gone": 2},
        "samples": {"read": 7, "archived": 7, "quarantined": 0, "lost": 3},
    },
    [],
)
NAMES = ("a", "b", "c d")
MANY = tuple(f"a {number}" for number in range(7))  # some lists have more than 20 rows
Key = Callable[[dict[str, Any]], Any]


def of(rows: Rows, table: str) -> list[dict[str, Any]]:
    return [row for each in rows.values() for row in each[table]]


def by(rows: list[dict[str, Any]], key: Key, value: str) -> dict[Any, int]:
    found: Counter[Any] = Counter()
    for row in rows:
        found[key(row)] += row[value]
    return found


def queue(row: dict[str, Any]) -> tuple[str, str]:
    return row["domain"], row["queue"]


def summed(lists: list[list[int]]) -> list[int]:
    return [sum(column) for column in zip(*lists, strict=True)]


@pytest.fixture(params=[NAMES, MANY])
def rows(chance: random.Random, request: pytest.FixtureRequest) -> Rows:
    return some(chance, HOURS, request.param)


@pytest.fixture
def found(rows: Rows) -> Report:
    return make(tables(rows, HOURS), OF)


def test_totals_are_the_sums_of_all_rows(rows: Rows, found: Report) -> None:
    traffic, deaths, depths = (of(rows, table) for table in ("traffic", "deaths", "depths"))
    counters = {"in_": "added", "in_octets": "bytes_in", "out": "delivered", "acked": "acked"}
    counters |= {"acked_octets": "bytes_out", "returned": "returned", "died": "dead_all", "added": "added"}
    for name, counter in counters.items():
        assert getattr(found.totals, name) == sum(row[counter] for row in depths)
    for name, column in {"sampled_in": "in", "sampled_out": "out", "out_octets": "out_octets"}.items():
        assert getattr(found.totals, name) == sum(row[column] for row in traffic)
    assert found.totals.refused == 4 * len(traffic)
    assert found.totals.dead == sum(row["count"] for row in deaths)
    assert found.totals.dead_octets == sum(row["octets"] for row in deaths)
    assert found.totals.queues == len({queue(row) for row in traffic})
    assert [(each.name, each.count) for each in found.refused] == [
        (traffic[0]["queue"], 3 * len(traffic)),
        ("full", len(traffic)),
    ]


def test_totals_say_how_samples_differ_from_counters(rows: Rows) -> None:
    for row in of(rows, "traffic"):
        row |= {"in": 0, "out": 0}
    rows[hour(0)]["traffic"][0] |= {"in": 982, "out": 500}

    def told(added: int, delivered: int) -> str:
        for row in of(rows, "depths"):
            row |= {"added": 0, "delivered": 0}
        rows[hour(0)]["depths"][0] |= {"added": added, "delivered": delivered}
        return make(tables(rows, HOURS), OF).totals.difference

    assert told(982, 500) == ""
    assert told(1000, 500).startswith("Edges' samples cover 98.2 % of the messages published: the rest went ")
    assert told(1000, 1000).startswith(
        "Edges' samples cover 98.2 % of the messages published and 50 % of the messages delivered: the rest "
    )
    assert told(980, 500).startswith(
        "Edges' samples have 2 more messages published than the queues' counters"
    )
    assert "50 % of the messages delivered" in told(980, 1000)
    assert "They have 2 more messages published than" in told(980, 1000)


def test_hours_are_told_one_by_one(rows: Rows, found: Report) -> None:
    assert [each.hour for each in found.hours] == [hour(back) for back in reversed(range(HOURS))]
    for each in found.hours:
        own = rows[each.hour]
        assert each.in_ == sum(row["added"] for row in own["depths"])
        assert each.out == sum(row["delivered"] for row in own["depths"])
        assert each.dead == sum(row["count"] for row in own["deaths"])
        assert each.refused == sum(row["refused_all"] for row in own["traffic"])


def test_queues_stand_in_the_order_of_their_deaths(rows: Rows, found: Report) -> None:
    dead = by(of(rows, "deaths"), queue, "count")
    assert [(each.domain, each.queue) for each in found.queues] == sorted(
        dead, key=lambda key: (-dead[key], key)
    )
    for each in found.queues:
        name = each.domain, each.queue
        own = [row for row in of(rows, "traffic") if queue(row) == name]
        put, wait = (summed([row[column] for row in own]) for column in ("put", "wait"))
        assert each.dead == dead[name]
        counted = [row for row in of(rows, "depths") if queue(row) == name]
        assert each.in_ == sum(row["added"] for row in counted)
        assert each.out == sum(row["delivered"] for row in counted)
        assert each.put_p50 == pytest.approx(expected.quantile(put, expected.PUT, 0.5))
        assert each.put_p99 == pytest.approx(expected.quantile(put, expected.PUT, 0.99))
        assert each.wait_p50 == pytest.approx(expected.quantile(wait, expected.WAIT, 0.5))
        assert each.wait_p99 == pytest.approx(expected.quantile(wait, expected.WAIT, 0.99))
        assert each.len_max == max(row["len_max"] for row in of(rows, "depths") if queue(row) == name)


def test_the_error_budget_is_what_the_objective_leaves(rows: Rows, found: Report) -> None:
    traffic = of(rows, "traffic")
    accepted, refused = by(traffic, queue, "in"), by(traffic, queue, "refused_puts")
    used = {
        name: refused[name] / (refused[name] + accepted[name]) / 0.01 for name in refused if refused[name]
    }
    assert [(each.domain, each.queue) for each in found.budget.queues] == sorted(
        used, key=lambda name: (-used[name], name)
    )
    for each in found.budget.queues:
        assert each.used == pytest.approx(used[each.domain, each.queue])
    everything = sum(refused.values()) / (sum(refused.values()) + sum(accepted.values()))
    assert found.budget.availability == pytest.approx(1 - everything)
    assert found.budget.used == pytest.approx(everything / 0.01)


def test_deaths_are_told_by_reason_edge_and_origin(rows: Rows, found: Report) -> None:
    deaths = of(rows, "deaths")
    for shown, key, table in (
        (found.deaths.by_reason, "reason", "deaths"),
        (found.deaths.by_edge, "edge", "deaths"),
        (found.deaths.by_origin, "origin", "origins"),
    ):
        wanted = by(of(rows, table), lambda row, key=key: row[key], "count")  # type: ignore[misc]
        assert [(each.name, each.count) for each in shown] == sorted(
            wanted.items(), key=lambda pair: (-pair[1], pair[0])
        )
    age = summed([row["age"] for row in deaths])
    assert list(found.deaths.age.counts) == age
    for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
        assert getattr(found.deaths.age, name) == pytest.approx(expected.quantile(age, expected.WAIT, share))


def test_failures_of_all_hours_are_one(rows: Rows, found: Report) -> None:
    def key(row: dict[str, Any]) -> tuple[str, ...]:
        return tuple(row[name] for name in ("domain", "queue", "reason", "pattern", "fingerprint"))

    wanted = by(of(rows, "failures"), key, "count")
    order = sorted(wanted, key=lambda name: (-wanted[name], name))[:20]
    assert found.left_out.get("failures", 0) == len(wanted) - len(order)
    assert [
        (each.domain, each.queue, each.reason, each.pattern, each.fingerprint) for each in found.failures
    ] == order
    for each, name in zip(found.failures, order, strict=True):
        own = [row for row in of(rows, "failures") if key(row) == name]
        oldest = min(own, key=lambda row: row["first"])
        assert each.count == wanted[name]
        assert each.first_ms == oldest["first"].timestamp() * 1000
        assert each.last_ms == max(row["last"] for row in own).timestamp() * 1000
        assert (each.example_id, each.example) == (oldest["example_id"], oldest["example"])


def test_redrives_changes_edges_and_records(rows: Rows, found: Report) -> None:
    redrives, edges = of(rows, "redrives"), of(rows, "edges")
    redriven, again = (sum(row[name] for row in redrives) for name in ("redriven", "died_again"))
    assert (found.redrives.redriven, found.redrives.died_again) == (redriven, again)
    assert found.redrives.success == pytest.approx(1 - min(1.0, again / redriven))
    assert found.changes.count == len(of(rows, "changes"))
    assert [abs(each.z) for each in found.changes.top] == sorted(
        (abs(row["z"]) for row in of(rows, "changes")), reverse=True
    )[:20]
    for each in found.edges:
        own = [row for row in edges if row["edge"] == each.edge]
        assert each.opened == sum(row["opened"] for row in own)
        assert each.connections_max == max(row["connections_max"] for row in own)
        assert each.refused[0].count == sum(row["refused"]["busy"] for row in own)
    assert found.records.model_dump() == OF.records


def test_only_the_last_hours_count(chance: random.Random) -> None:
    rows = some(chance, 30, NAMES)
    found = make(tables(rows, 24), OF)
    recent = [row for back in range(24) for row in rows[hour(back)]["depths"]]
    assert found.totals.in_ == sum(row["added"] for row in recent)
    assert (found.period.first, found.period.last) == (hour(23), hour(0))
    assert found.period.known == 24


@pytest.mark.parametrize(
    ("now_ms", "is_running"),
    [
        (OF.now_ms, True),  # the first ms of the last hour
        (OF.now_ms + 3_599_999, True),
        (OF.now_ms + 3_600_000, False),
        (OF.now_ms - 1, True),  # the store's clock is ahead
    ],
)
def test_a_period_says_whether_its_last_hour_still_runs(now_ms: int, is_running: bool) -> None:
    rows = tables(some(random.Random(1), 2, NAMES), 24)
    assert make(rows, replace(OF, now_ms=now_ms)).period.is_running is is_running
    assert not make(tables({}, 24), replace(OF, now_ms=now_ms)).period.is_running


def test_a_period_ends_with_the_newest_hour_whatever_is_missing() -> None:
    span = span_of({hour(0), hour(3), hour(9)}, 5)
    assert (span.first, span.last, span.known) == (hour(4), hour(0), (hour(3), hour(0)))
    assert span.all() == [hour(back) for back in (4, 3, 2, 1, 0)]
    assert span_of(set(), 5).all() == []


def test_what_runs_of_the_period_missed_is_told_whatever_the_last_one_read(rows: Rows) -> None:
    known: list[tuple[str, dict[str, int]]] = [
        (hour(HOURS), {"lost_samples": 1000, "quarantined_dead": 1000}),  # before it
        (hour(HOURS - 1), {"lost_samples": 5}),
        (hour(1), {"lost_samples": 2, "quarantined_dead": 1, "quarantined_samples": 4}),
        (hour(-1), {"quarantined_samples": 3}),  # planned before its own hour had rows
    ]
    found = make(tables(rows, HOURS), replace(OF, missing=known)).missing
    assert (found.lost_samples, found.quarantined_dead, found.quarantined_samples) == (7, 1, 7)
    assert found.quarantined == 8
    assert make(tables({}, 24), replace(OF, missing=known)).missing.lost_samples == 1007


def test_without_tables_there_is_a_report_of_nothing() -> None:
    found = make(tables({}, 24), OF)
    assert (found.totals.in_, found.totals.dead, found.queues, found.hours) == (0, 0, (), ())
    assert (found.budget.used, found.redrives.success, found.put.p99) == (None, None, None)
    assert decode(found.encode()) == found


def test_it_has_a_bound_whatever_the_names(chance: random.Random) -> None:
    """Check that lists get shorter, and count the rows left out, with long names and many rows."""
    names = tuple(f"{number:02d}" + "\U0001f480\x00" * 400 for number in range(40))
    rows = some(chance, 2, names)
    found = make(tables(rows, 168), OF)
    assert len(found.encode()) <= MOST_OCTETS
    assert len(found.queues) < 20
    queues = {queue(row) for row in of(rows, "traffic")}
    assert found.left_out["queues"] + len(found.queues) == len(queues)
    assert all(len(each.queue) == 100 and each.queue.endswith("…") for each in found.queues)
    assert found.totals.dead == sum(row["count"] for row in of(rows, "deaths"))


def test_texts_that_are_null_are_empty(chance: random.Random) -> None:
    rows = some(chance, 1, NAMES)
    rows[hour(0)]["deaths"][0] |= {"domain": None, "edge": None}
    rows[hour(0)]["failures"][0] |= {"pattern": None, "example": None}
    found = make(tables(rows, 24), OF)
    assert "" in {each.domain for each in found.queues}
    assert "" in {each.name for each in found.deaths.by_edge}
    assert ("", "") in {(each.pattern, each.example) for each in found.failures}


def test_hostile_names_are_kept_as_they_are(chance: random.Random) -> None:
    found = make(tables(some(chance, 1, HOSTILE), 24), OF)
    told = json.loads(found.encode())
    assert {each["queue"] for each in told["queues"]} >= {each for each in HOSTILE if len(each) <= 100}


def test_the_same_tables_give_the_same_octets(rows: Rows, chance: random.Random) -> None:
    shuffled = {
        name: {table: chance.sample(some, len(some)) for table, some in own.items()}
        for name, own in rows.items()
    }
    assert make(tables(rows, HOURS), OF).encode() == make(tables(shuffled, HOURS), OF).encode()
