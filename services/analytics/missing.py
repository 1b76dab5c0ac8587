"""Count what runs could not read or use, by the hour of their planning, for the reports of a period.

A run knows only itself, but what it missed stays missing in the tables that later reports read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from services.analytics.files import Files
from services.analytics.hours import hour_at
from services.analytics.publish import runs
from services.analytics.summaries import Summaries

MOST_HOURS = 1000  # hours that are kept; a report covers at most 168
Missing = dict[str, dict[str, int]]  # by hour, 'YYYY-MM-DDTHH'; only what is more than 0


def with_run(known: Missing, summary: Mapping[str, Any]) -> Missing:
    """Return the counts including those of this run."""
    dead, samples = summary["dead"], summary["samples"]
    counts = {
        "lost_samples": samples["lost"],
        "quarantined_dead": dead["quarantined"],
        "quarantined_samples": samples["quarantined"],
        "lost_streams": len(summary.get("lost_streams", ())),  # missing in summaries of older versions
        "late": summary.get("late", 0),
    }
    own = {name: number for name, number in counts.items() if number}
    if not own:
        return known
    hour = hour_at(summary["now_ms"])
    added = {**known, hour: dict(Counter(known.get(hour, {})) + Counter(own))}
    return {each: added[each] for each in sorted(added)[-MOST_HOURS:]}


def of_runs(files: Files, ended: Summaries) -> Missing:
    """Return the counts of all runs by their summaries, for an output whose state lacks them."""
    found: Missing = {}
    for run in runs(files):
        if (summary := ended.of(run)) is not None:
            found = with_run(found, summary)
    return found


def since(known: Missing, first: str) -> dict[str, int]:
    """Return the sums over runs that were planned in this hour or later."""
    return dict(sum((Counter(counts) for hour, counts in _behind(known, first)), Counter[str]()))


def _behind(known: Missing, first: str) -> Iterable[tuple[str, dict[str, int]]]:
    return ((hour, counts) for hour, counts in known.items() if hour >= first)
