"""Compute the report from the tables of its period."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from services.analytics import missing
from services.analytics.report.dying import failures, redrives, what_died
from services.analytics.report.period import Span, Tables
from services.analytics.report.queues import COUNTED, DIED, Queues, nothing, renamed
from services.analytics.report.shortening import Shortening, cut
from services.analytics.report.sums import Row, grouped, most, quantiles, reasons, total
from services.analytics.table_files import HOUR
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
    missing: missing.Missing  # counts of all runs, by hour


def make(tables: Tables, of: Of) -> Report:
    """Return the report, with lists as long as MOST_OCTETS allows."""
    for top in TOPS:
        found = _report(tables, of, Shortening(top))
        if len(found.encode()) <= MOST_OCTETS:
            break
    return found


def _report(tables: Tables, of: Of, short: Shortening) -> Report:
    span, rows = tables.span, tables.rows
    traffic = rows["traffic"]
    queues = Queues(traffic, rows["deaths"], rows["depths"])
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
        refused=short.most_common("refused", reasons(traffic["refused"].to_pylist())),
        deaths=what_died(rows["deaths"], rows["origins"], short),
        failures=failures(rows["failures"], short),
        redrives=redrives(rows["redrives"], short),
        changes=_changes(rows["changes"], short),
        edges=_edges(rows["edges"], short),
        records=Records.model_validate(of.records),
        missing=Missing.model_validate(missing.since(of.missing, span.first)),
        left_out=short.left_out,
    )


def _period(span: Span, now_ms: int) -> Period:
    this_hour = f"{datetime.fromtimestamp(now_ms / 1000, UTC):%Y-%m-%dT%H}"
    known = len(span.known)
    return Period(
        first=span.first, last=span.last, hours=span.hours, known=known, is_running=span.last >= this_hour
    )


def _totals(tables: Tables, queues: int) -> Totals:
    traffic, depths, deaths = (tables.rows[name] for name in ("traffic", "depths", "deaths"))
    same = ("in", "in_octets", "out", "out_octets", "acked", "returned")
    return Totals.model_validate(
        {
            **{name: total(traffic, name) for name in same},
            "queues": queues,
            "refused": total(traffic, "refused_all"),
            "dead": total(deaths, "count"),
            "dead_octets": total(deaths, "octets"),
            "added": total(depths, "added"),
            "died": total(depths, "dead_all"),
        }
    )


def _hours(tables: Tables) -> tuple[HourFigures, ...]:
    found = {hour: {**nothing(), "hour": hour} for hour in tables.span.known}
    for name, columns in (("traffic", COUNTED), ("deaths", DIED)):
        for row in grouped(tables.rows[name], [HOUR], **columns):
            found[row[HOUR]] |= renamed(row)
    return tuple(HourFigures.model_validate(found[hour]) for hour in tables.span.known)


def _changes(rows: pa.Table, short: Shortening) -> Changes:
    names = (HOUR, "domain", "queue", "metric")
    ordered = sorted(rows.to_pylist(), key=lambda row: (-abs(row["z"]), *(row[name] for name in names)))
    top = [{**row, "hour": row[HOUR]} for row in short.first("changes.top", ordered)]
    return Changes(count=len(ordered), top=tuple(Change.model_validate(row) for row in top))


def _edges(rows: pa.Table, short: Shortening) -> tuple[EdgeFigures, ...]:
    found = most(grouped(rows, ["edge"], **OF_EDGES), ["edge"], "opened")
    return tuple(_edge(row, rows, short) for row in short.first("edges", found))


def _edge(row: Row, rows: pa.Table, short: Shortening) -> EdgeFigures:
    own, name = rows.filter(pc.equal(rows["edge"], row["edge"])), cut(row["edge"])
    refused = short.most_common(f"edges.{name}.refused", reasons(own["refused"].to_pylist()))
    told = {**row, "edge": name, "processes_max": row["processes"], "refused": refused}
    return EdgeFigures.model_validate(told)
