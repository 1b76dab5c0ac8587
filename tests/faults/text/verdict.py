"""Verdict on a run; for violations, report the seed, the faults and the violations."""

from __future__ import annotations

import statistics

from tests.faults.run_report import Judged, Violation, judged
from tests.faults.text.checker import check
from tests.faults.text.run import Outcome


def judge(outcome: Outcome) -> list[Violation]:
    found = [Violation("stuck", text) for text in outcome.failures]
    found += [Violation("logged", text) for text in outcome.logged]
    if not outcome.books:
        return [*found, Violation("stuck", "the logs could not be read")]
    history = outcome.history
    return found + check(history.sent, outcome.books, history.lives)


def summary(outcome: Outcome) -> str:
    """Return one line with the run's parameters and counts."""
    history = outcome.history
    certain = sum(send.is_certain for send in history.sent)
    unknown = sum(send.answered is None for send in history.sent)
    refused = sum(send.was_refused for send in history.sent)
    lines = sum(len(life.lines) for life in history.lives)
    through = sum(life.ended is None for life in history.lives)
    origins = {entry.origin for book in outcome.books for entry in book.entries}
    parts = [f"seed {outcome.seed}", f"{outcome.seconds:.0f} s", f"{outcome.kills} kills"]
    parts += [
        f"{len(outcome.faults)} faults",
        f"{certain} messages certain, {unknown} unknown, {refused} refused",
    ]
    parts += [f"{len(history.lives)} lives of subscribers, {through} to the end", f"{lines} lines"]
    parts += [f"{len(origins)} incarnations"]
    resumed = [f.resumed - f.ended for f in outcome.faults if f.resumed is not None and f.ended is not None]
    if resumed:
        parts.append(f"served again after {statistics.median(resumed):.1f} s, at most {max(resumed):.1f} s")
    if outcome.healed_s is not None:
        parts.append(f"healed after {outcome.healed_s:.1f} s")
    return ", ".join(parts)


def verdict(outcome: Outcome) -> Judged:
    began = outcome.history.began
    return judged(outcome.seed, summary(outcome), began, outcome.faults, judge(outcome))
