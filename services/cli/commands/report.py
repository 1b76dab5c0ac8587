"""Implement `penstock report`: show the latest analytics report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from services.cli.framework.command import store_command
from services.cli.terminal.exits import not_found
from services.cli.terminal.output import Output
from services.cli.terminal.text import age, count
from services.kit.words import hour, hour_end, moment, number, octets, seconds, share
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
    for title, columns, rows in _tables(found):
        if rows:
            output.line("")
            output.line(title)
            output.table(columns, rows[:SHOWN])


def _period(found: Report, old_ms: int) -> str:
    period = found.period
    if not period.last:
        return f"run {found.run}, {age(old_ms)} ago: no records yet"
    hours = f"{count(period.hours, 'hour')}, {number(period.known)} with records"
    to = f"to {hour_end(period.last)} UTC"
    if period.is_running:
        to, hours = f"until now, {moment(found.now_ms)} UTC", f"{hours}, the last one incomplete"
    return f"{hour(period.first)} {to} ({hours}); run {found.run}, {age(old_ms)} ago"


def _missed(found: Report) -> str:
    """Return what is missing from the report, over all runs of the period."""
    missing = found.missing
    counts = (
        (missing.lost_samples, "samples lost"),
        (missing.lost_streams, "streams deleted or rewound"),
        (missing.quarantined, "quarantined"),
        (missing.late, "too late for the tables"),
    )
    return ", ".join(f"{words} {number(each)}" for each, words in counts if each)


def _figures(found: Report) -> Iterator[tuple[str, str]]:
    totals, budget, records = found.totals, found.budget, found.records
    yield "published", f"{number(totals.in_)}, {octets(totals.in_octets)}"
    yield "delivered", f"{number(totals.out)}, {octets(totals.out_octets)}"
    yield "refused", _with(number(totals.refused), found.refused)
    yield "error budget used", f"{share(budget.used)}, with an objective of {share(budget.objective)}"
    yield "dead letters", _with(number(totals.dead), found.deaths.by_reason)
    yield "dead letters, as queues count", number(totals.died)
    yield "time until dead", _quantiles(found.deaths.age)
    yield "time to durable", _quantiles(found.put)
    yield "time in the queue", _quantiles(found.wait)
    back = found.redrives
    helped = f"success {share(back.success)}"
    yield "redriven", f"{number(back.redriven)}, dead again {number(back.died_again)}, {helped}"
    yield "sudden changes", number(found.changes.count)
    read = f"{count(records.dead.read, 'dead letter')}, {count(records.samples.read, 'sample')}"
    unused = f"quarantined {number(records.dead.quarantined + records.samples.quarantined)}"
    yield "read by the run", f"{read}; {unused}, samples lost {number(records.samples.lost)}"


def _with(total: str, counts: Sequence[Count]) -> str:
    named = _named(counts)
    return f"{total}: {named}" if named else total


def _named(counts: Sequence[Count]) -> str:
    return ", ".join(f"{each.name} {number(each.count)}" for each in counts[:SHOWN])


def _quantiles(times: Quantiles) -> str:
    return f"p50 {seconds(times.p50)}, p90 {seconds(times.p90)}, p99 {seconds(times.p99)}"


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
    return *what, number(each.count), moment(each.last_ms), each.example_id


def _queue(each: QueueFigures) -> tuple[str, ...]:
    counts = map(number, (each.dead, each.refused, each.in_, each.out))
    return each.queue, each.domain, *counts, seconds(each.put_p99), seconds(each.wait_p99)


def _budget(each: QueueBudget) -> tuple[str, ...]:
    counts = map(number, (each.asked, each.refused))
    return each.queue, each.domain, *counts, share(each.availability), share(each.used)


def _change(each: Change) -> tuple[str, ...]:
    format_value = seconds if each.metric in TIMES else number
    what = (hour(each.hour), each.queue, each.domain, each.metric, each.verdict)
    return *what, format_value(each.value), format_value(each.week_median)


def _edge(each: EdgeFigures) -> tuple[str, ...]:
    counts = map(number, (each.processes_max, each.connections_max, each.opened))
    flow = map(octets, (each.received_octets, each.sent_octets))
    return each.edge, *counts, *flow, _named(each.refused)


def _counted(each: Count) -> tuple[str, str]:
    return each.name, number(each.count)
