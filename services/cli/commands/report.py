"""Implement `penstock report`: show the latest analytics report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from services.cli.framework.command import store_command
from services.cli.terminal.exits import not_found
from services.cli.terminal.output import Output
from services.cli.terminal.text import age, count
from services.kit.formatting import (
    format_duration,
    format_hour,
    format_hour_end,
    format_number,
    format_octets,
    format_share,
    format_time,
)
from services.store import Store
from services.store.report import (
    Change,
    Count,
    EdgeFigures,
    Failure,
    Quantiles,
    QueueBudget,
    QueueFigures,
    Report,
    read_report,
)

SHOWN = 10  # rows of a table; --json has all
TIMES = ("put_p99", "wait_p99")  # metrics of changes that are seconds


@click.command()
@store_command
async def report(store: Store, output: Output) -> None:
    """Show the latest report of the analytics job.

    The same report with plots is reports/latest.html in the job's output. Ends with 4 if there is no report yet.
    """
    found = await read_report(store.registry)
    if found is None:
        raise not_found("no report yet: run the analytics job")
    if output.as_json:
        output.record(found.model_dump(mode="json", by_alias=True))
        return
    _show(output, found, max(await store.now_ms() - found.now_ms, 0))


def _show(output: Output, found: Report, old_ms: int) -> None:
    output.line(_period(found, old_ms))
    if missed := _missed(found):
        output.line(f"incomplete: {missed}")
    output.pairs(_figures(found))
    if found.totals.difference:
        output.line(found.totals.difference)
    for title, columns, rows in _tables(found):
        if rows:
            output.line("")
            output.line(title)
            output.table(columns, rows[:SHOWN])


def _period(found: Report, old_ms: int) -> str:
    period = found.period
    if not period.last:
        return f"run {found.run}, {age(old_ms)} ago: no records yet"
    hours = f"{count(period.hours, 'hour')}, {format_number(period.known)} with records"
    to = f"to {format_hour_end(period.last)} UTC"
    if period.is_running:
        to, hours = f"until now, {format_time(found.now_ms)} UTC", f"{hours}, the last one incomplete"
    return f"{format_hour(period.first)} {to} ({hours}); run {found.run}, {age(old_ms)} ago"


def _missed(found: Report) -> str:
    """Return what is missing from the report, over all runs of the period."""
    missing = found.missing
    counts = (
        (missing.lost_samples, "samples lost"),
        (missing.lost_streams, "streams deleted or rewound"),
        (missing.quarantined, "quarantined"),
        (missing.late, "too late for the tables"),
    )
    return ", ".join(f"{words} {format_number(each)}" for each, words in counts if each)


def _figures(found: Report) -> Iterator[tuple[str, str]]:
    totals, budget, records = found.totals, found.budget, found.records
    yield "published", f"{format_number(totals.in_)}, {format_octets(totals.in_octets)}"
    yield "delivered", format_number(totals.out)
    if totals.acked_octets is not None:  # older jobs did not count them
        yield "acknowledged", f"{format_number(totals.acked)}, {format_octets(totals.acked_octets)}"
    yield "refused", _with(format_number(totals.refused), found.refused)
    yield (
        "error budget used",
        f"{format_share(budget.used)}, with an objective of {format_share(budget.objective)}",
    )
    yield "died", format_number(totals.died)
    yield "dead letters read", _with(format_number(totals.dead), found.deaths.by_reason)
    yield "time until dead", _quantiles(found.deaths.age)
    yield "time to durable", _quantiles(found.put)
    yield "time in the queue", _quantiles(found.wait)
    back = found.redrives
    helped = f"success {format_share(back.success)}"
    yield "redriven", f"{format_number(back.redriven)}, dead again {format_number(back.died_again)}, {helped}"
    yield "sudden changes", format_number(found.changes.count)
    read = f"{count(records.dead.read, 'dead letter')}, {count(records.samples.read, 'sample')}"
    unused = f"quarantined {format_number(records.dead.quarantined + records.samples.quarantined)}"
    yield "read by the run", f"{read}; {unused}, samples lost {format_number(records.samples.lost)}"


def _with(total: str, counts: Sequence[Count]) -> str:
    named = _named(counts)
    return f"{total}: {named}" if named else total


def _named(counts: Sequence[Count]) -> str:
    return ", ".join(f"{each.name} {format_number(each.count)}" for each in counts[:SHOWN])


def _quantiles(times: Quantiles) -> str:
    return f"p50 {format_duration(times.p50)}, p90 {format_duration(times.p90)}, p99 {format_duration(times.p99)}"


def _tables(found: Report) -> Iterator[tuple[str, Sequence[str], list[tuple[str, ...]]]]:
    """Yield title, columns and rows of each table; empty tables are not shown."""
    columns: tuple[str, ...] = ("queue", "domain", "reason", "error", "number#", "last, UTC", "oldest")
    yield "failures by pattern", columns, list(map(_failure, found.failures))
    columns = ("queue", "domain", "dead#", "refused#", "in#", "out#", "p99 durable#", "p99 waited#")
    yield "queues", columns, list(map(_queue, found.queues))
    columns = ("queue", "domain", "requests#", "refused#", "availability#", "used#")
    yield "error budgets", columns, list(map(_budget, found.budget.queues))
    columns = ("hour, UTC", "queue", "domain", "metric", "verdict", "now#", "week#")
    yield "sudden changes", columns, list(map(_change, found.changes.top))
    yield "origins of dead letters", ("origin", "number#"), list(map(_counted, found.deaths.by_origin))
    columns = ("edge", "processes#", "connections#", "opened#", "received#", "sent#", "refused")
    yield "edges", columns, list(map(_edge, found.edges))


def _failure(each: Failure) -> tuple[str, ...]:
    what = (each.queue, each.domain, each.reason, each.pattern)
    return *what, format_number(each.count), format_time(each.last_ms), each.example_id


def _queue(each: QueueFigures) -> tuple[str, ...]:
    counts = map(format_number, (each.dead, each.refused, each.in_, each.out))
    return each.queue, each.domain, *counts, format_duration(each.put_p99), format_duration(each.wait_p99)


def _budget(each: QueueBudget) -> tuple[str, ...]:
    counts = map(format_number, (each.asked, each.refused))
    return each.queue, each.domain, *counts, format_share(each.availability), format_share(each.used)


def _change(each: Change) -> tuple[str, ...]:
    format_value = format_duration if each.metric in TIMES else format_number
    what = (format_hour(each.hour), each.queue, each.domain, each.metric, each.verdict)
    return *what, format_value(each.value), format_value(each.week_median)


def _edge(each: EdgeFigures) -> tuple[str, ...]:
    counts = map(format_number, (each.processes_max, each.connections_max, each.opened))
    flow = map(format_octets, (each.received_octets, each.sent_octets))
    return each.edge, *counts, *flow, _named(each.refused)


def _counted(each: Count) -> tuple[str, str]:
    return each.name, format_number(each.count)
