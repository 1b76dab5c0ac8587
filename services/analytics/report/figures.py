"""Compute the report from the tables of its period."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from services.analytics.hours import Span, hour_at
from services.analytics.report.dying import failures, redrives, what_died
from services.analytics.report.period import CHANGE, HOUR, Tables
from services.analytics.report.queues import Queues, by_key
from services.analytics.report.shortening import Shortening, cut
from services.analytics.report.sums import Row, grouped, most, quantiles, reasons, total
from services.analytics.report.words import difference
from services.store.model import PUT_S, WAIT_S
from services.store.report import (
    MOST_OCTETS,
    VERSION,
    Change,
    Changes,
    EdgeFigures,
    HourFigures,
    Missing,
    Period,
    Records,
    Report,
    Totals,
)

TOPS = (20, 15, 10, 6, 3, 1)  # rows of each list; the first that fits is used
COUNTERS = {  # totals by the queues' counters
    **{
        "in": "added",
        "in_octets": "bytes_in",
        "out": "delivered",
        "acked": "acked",
        "acked_octets": "bytes_out",
    },
    **{"returned": "returned", "died": "dead_all"},
}
OF_EDGES = {
    **{"processes": "max", "connections_max": "max"},
    **dict.fromkeys(("opened", "received_octets", "sent_octets"), "sum"),
}


@dataclass(frozen=True, slots=True)
class Of:
    """The run that the report belongs to."""

    run: str
    now_ms: int
    objective: float
    records: dict[str, dict[str, int]]  # counts of the run, by kind
    missing: Collection[
        tuple[str, Mapping[str, int]]
    ]  # of each run: the hour when it began, and its fields of Missing


def make(tables: Tables, of: Of) -> Report:
    """Return the report, with lists as long as MOST_OCTETS allows."""
    for top in TOPS:
        found = _report(tables, of, Shortening(top))
        if len(found.encode()) <= MOST_OCTETS:
            break
    return found


def _report(tables: Tables, of: Of, short: Shortening) -> Report:
    span, rows = tables.span, tables.rows
    traffic, refused = rows["traffic"], grouped(rows["refused"], ["reason"], count="sum")
    queues = Queues(rows)
    return Report(
        version=VERSION,
        run=of.run,
        now_ms=of.now_ms,
        period=_period(span, of.now_ms),
        totals=_totals(tables, len(queues.rows)),
        budget=queues.budget(of.objective, short),
        hours=_hours(tables),
        queues=queues.top(short),
        put=quantiles(traffic, "put", PUT_S),
        wait=quantiles(traffic, "wait", WAIT_S),
        refused=short.most_common("refused", Counter({row["reason"]: row["count"] for row in refused})),
        deaths=what_died(tables, short),
        failures=failures(tables, short),
        redrives=redrives(rows["redrives"], short),
        changes=_changes(tables, short),
        edges=_edges(rows["edges"], short),
        records=Records.model_validate(of.records),
        missing=_missing(of, span.first),
        left_out=short.left_out,
    )


def _period(span: Span, now_ms: int) -> Period:
    is_running = span.last >= hour_at(now_ms)
    return Period(
        first=span.first, last=span.last, hours=span.hours, known=len(span.known), is_running=is_running
    )


def _missing(of: Of, first: str) -> Missing:
    """Return what is missing by the runs of the period."""
    counts = (Counter(own) for hour, own in of.missing if hour >= first)
    return Missing.model_validate(dict(sum(counts, Counter[str]())))


def _totals(tables: Tables, queues: int) -> Totals:
    """Return exact counts by the queues' counters, with what edges sampled of them, and sums of dead letters."""
    traffic, depths, deaths = (tables.rows[name] for name in ("traffic", "depths", "deaths"))
    counted = {name: total(depths, column) for name, column in COUNTERS.items()}
    sampled_in, sampled_out = total(traffic, "in"), total(traffic, "out")
    return Totals(
        queues=queues,
        **counted,
        added=counted["in"],
        out_octets=total(traffic, "out_octets"),
        refused=total(traffic, "refused_all"),
        dead=total(deaths, "count"),
        dead_octets=total(deaths, "octets"),
        sampled_in=sampled_in,
        sampled_out=sampled_out,
        difference=difference(counted["in"], sampled_in, counted["out"], sampled_out),
    )


def _hours(tables: Tables) -> tuple[HourFigures, ...]:
    found = by_key(tables.by_hour, [HOUR])
    nothing = dict.fromkeys(("in", "out", "refused", "dead"), 0)
    return tuple(
        HourFigures.model_validate({**found.get((hour,), nothing), "hour": hour})
        for hour in tables.span.known
    )


def _changes(tables: Tables, short: Shortening) -> Changes:
    rows = tables.rows["changes"].to_pylist()
    count = tables.lengths.get("changes", len(rows))
    ordered = sorted(rows, key=lambda row: (-abs(row["z"]), *(row[name] for name in CHANGE)))
    top = [{**row, "hour": row[HOUR]} for row in short.first("changes.top", ordered, count)]
    return Changes(count=count, top=tuple(Change.model_validate(row) for row in top))


def _edges(rows: pa.Table, short: Shortening) -> tuple[EdgeFigures, ...]:
    found = most(grouped(rows, ["edge"], **OF_EDGES), ["edge"], "opened")
    return tuple(_edge(row, rows, short) for row in short.first("edges", found))


def _edge(row: Row, rows: pa.Table, short: Shortening) -> EdgeFigures:
    own, name = rows.filter(pc.equal(rows["edge"], row["edge"])), cut(row["edge"])
    refused = short.most_common(f"edges.{name}.refused", reasons(own["refused"].to_pylist()))
    told = {**row, "edge": name, "processes_max": row["processes"], "refused": refused}
    return EdgeFigures.model_validate(told)
