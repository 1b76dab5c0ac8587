"""Make the report from what the tables of its period tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from services.analytics.hours import Span, hour_at
from services.analytics.report.period import Row, Summary
from services.analytics.report.shortening import Shortening
from services.analytics.report.words import difference
from services.analytics.tables import AGE_S, QUANTILES
from services.store.model import PUT_S, WAIT_S
from services.store.report import MOST_OCTETS, VERSION, Report

TOPS = (20, 15, 10, 6, 3, 1)  # rows of each list; the first that fits is used
BOUNDS = {"put": PUT_S, "wait": WAIT_S}


@dataclass(frozen=True, slots=True)
class Of:
    """The run that the report belongs to."""

    run: str
    now_ms: int
    objective: float
    records: dict[str, dict[str, int]]  # counts of the run, by kind
    # of each run: the hour when it began, and its fields of Missing
    missing: Collection[tuple[str, Mapping[str, int]]]


def make(summary: Summary, of: Of) -> Report:
    """Return the report, with lists as long as MOST_OCTETS allows."""
    for top in TOPS:
        found = _report(summary, of, Shortening(summary, top))
        if len(found.encode()) <= MOST_OCTETS:
            break
    return found


def _report(summary: Summary, of: Of, short: Shortening) -> Report:
    span, sums = summary.span, summary.sums
    return Report.model_validate(
        {
            "version": VERSION,
            "run": of.run,
            "now_ms": of.now_ms,
            "period": _period(span, of.now_ms),
            "totals": _totals(summary),
            "budget": _budget(sums["traffic"], of.objective, short),
            "hours": _hours(summary),
            "queues": [{**row, **_times(row)} for row in short.listed("queues")],
            "put": _quantiles(sums["traffic"]["put"], PUT_S),
            "wait": _quantiles(sums["traffic"]["wait"], WAIT_S),
            "refused": short.listed("refused"),
            "deaths": {
                "by_reason": short.listed("deaths.by_reason"),
                "by_edge": short.listed("deaths.by_edge"),
                "by_origin": short.listed("deaths.by_origin"),
                "redriven": sums["deaths"]["redriven"],
                "age": _quantiles(sums["deaths"]["age"], AGE_S),
            },
            "failures": short.listed("failures"),
            "redrives": {**sums["redrives"], "queues": short.listed("redrives.queues")},
            "changes": {"count": summary.lengths["changes.top"], "top": short.listed("changes.top")},
            "edges": [_edge(row, short) for row in short.listed("edges")],
            "records": of.records,
            "missing": _missing(of, span.first),
            "left_out": short.left_out,
        }
    )


def _period(span: Span, now_ms: int) -> Row:
    return {
        "first": span.first,
        "last": span.last,
        "hours": span.hours,
        "known": len(span.known),
        "is_running": span.last >= hour_at(now_ms),
    }


def _missing(of: Of, first: str) -> Counter[str]:
    """Return what is missing by the runs of the period."""
    return sum((Counter(own) for hour, own in of.missing if hour >= first), Counter())


def _totals(summary: Summary) -> Row:
    """Return exact counts by the queues' counters, with what edges sampled of them, and sums of dead letters."""
    counted, sampled = summary.sums["depths"], summary.sums["traffic"]
    return {
        **summary.sums["deaths"],
        **sampled,
        **counted,
        "queues": summary.lengths["queues"],
        "difference": difference(
            counted["in"], sampled["sampled_in"], counted["out"], sampled["sampled_out"]
        ),
    }


def _budget(traffic: Row, objective: float, short: Shortening) -> Row:
    """Return the error budget of all queues, and of the queues that have used some of it, by the edges' samples."""
    return {
        "objective": objective,
        **_spent(traffic["sampled_in"], traffic["refused_puts"], objective),
        "queues": [
            {**row, **_spent(row["accepted"], row["refused"], objective)}
            for row in short.listed("budget.queues")
        ],
    }


def _spent(accepted: int, refused: int, objective: float) -> Row:
    asked = accepted + refused
    return {
        "asked": asked,
        "refused": refused,
        "availability": accepted / asked if asked else None,
        "used": refused / asked / (1 - objective) if asked else None,
    }


def _hours(summary: Summary) -> list[Row]:
    nothing = dict.fromkeys(("in", "out", "refused", "dead"), 0)
    return [{**summary.hours.get(hour, nothing), "hour": hour} for hour in summary.span.known]


def _times(queue: Row) -> Row:
    return {
        f"{name}_p{percent}": _quantile(queue[name], bounds, percent / 100)
        for name, bounds in BOUNDS.items()
        for percent in (50, 99)
    }


def _edge(row: Row, short: Shortening) -> Row:
    refused = row["refused"] or ()
    return {**row, "refused": short.first(f"edges.{row['edge']}.refused", refused, len(refused))}


def _quantile(counts: Sequence[int], bounds: Sequence[float], share: float) -> float | None:
    """Return the value that a share does not exceed, interpolated in its bucket; the last bound for values above it."""
    rank, seen, low = sum(counts) * share, 0, 0.0
    for count, high in zip(counts, (*bounds, bounds[-1]), strict=True):
        if count and seen + count >= rank:
            return low + (high - low) * ((rank - seen) / count)
        seen, low = seen + count, float(high)
    return None


def _quantiles(counts: Sequence[int], bounds: Sequence[float]) -> Row:
    """Return a histogram with its quantiles."""
    return {
        "counts": counts,
        **{name: _quantile(counts, bounds, share) for name, share in QUANTILES.items()},
    }
