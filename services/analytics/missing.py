"""What runs could not read, or not use, by the hour in which each was planned: a report says it for all of its period.

A run of its own accord knows of itself alone, and what it missed stays missing in the tables that later reports read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from services.analytics.files import Files
from services.analytics.hours import hour_at
from services.analytics.publish import runs
from services.analytics.summaries import Summaries

MOST_HOURS = 1000  # that are remembered; a report is about 168 at most
Missing = dict[str, dict[str, int]]  # by hour, 'YYYY-MM-DDTHH'; only what is more than 0


def with_run(known: Missing, summary: Mapping[str, Any]) -> Missing:
    """And what this run has missed."""
    dead, samples = summary["dead"], summary["samples"]
    counts = {
        "lost_samples": samples["lost"],
        "quarantined_dead": dead["quarantined"],
        "quarantined_samples": samples["quarantined"],
        "lost_streams": len(summary.get("lost_streams", ())),  # a run of before does not say
        "late": summary.get("late", 0),
    }
    own = {name: number for name, number in counts.items() if number}
    if not own:
        return known
    hour = hour_at(summary["now_ms"])
    added = {**known, hour: dict(Counter(known.get(hour, {})) + Counter(own))}
    return {each: added[each] for each in sorted(added)[-MOST_HOURS:]}


def of_runs(files: Files, ended: Summaries) -> Missing:
    """What all runs that are done have said of themselves: of an output whose state does not tell."""
    found: Missing = {}
    for run in runs(files):
        if (summary := ended.of(run)) is not None:
            found = with_run(found, summary)
    return found


def since(known: Missing, first: str) -> dict[str, int]:
    """The sums of runs that were planned in this hour or later."""
    return dict(sum((Counter(counts) for hour, counts in _behind(known, first)), Counter[str]()))


def _behind(known: Missing, first: str) -> Iterable[tuple[str, dict[str, int]]]:
    return ((hour, counts) for hour, counts in known.items() if hour >= first)
