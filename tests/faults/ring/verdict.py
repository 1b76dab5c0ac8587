"""Verdict on a run; for violations, report the seed, the faults and the violations."""

from __future__ import annotations

import statistics

from tests.faults.ring.checker import again, check, count
from tests.faults.ring.run import Outcome
from tests.faults.run_report import Judged, Violation, judged


def judge(outcome: Outcome) -> list[Violation]:
    found = [Violation("stuck", text) for text in outcome.failures]
    found += [Violation("logged", text) for text in outcome.logged]
    if not outcome.is_read:  # missing messages may still be in a store that could not be read
        return found
    return found + check(outcome.history)


def summary(outcome: Outcome) -> str:
    """Return one line with the run's parameters and counts."""
    history = outcome.history
    parts = [f"seed {outcome.seed}", f"{outcome.seconds:.0f} s", f"{outcome.kills} kills"]
    parts.append(f"{len(outcome.faults)} faults")
    if outcome.closed_s is not None:
        parts.append(f"first ring {outcome.closed_s:.1f} s after the last start")
    if outcome.rings_s:
        median, most = statistics.median(outcome.rings_s), max(outcome.rings_s)
        parts.append(f"one ring again {median:.1f} s after an episode, at most {most:.1f} s")
    if outcome.healed_s is not None:
        parts.append(f"{outcome.healed_s:.1f} s after the last one")
    for goes_round, where in ((False, "own store"), (True, "around the ring")):
        parts.append(f"{where}: {count([push for push in history.pushes if push.goes_round is goes_round])}")
    parts.append(f"{len(history.pulls)} pulled, {again(history)} again")
    parts.append(f"{len(history.sent)} sent to the inbox")
    parts.append(f"{outcome.gave_up} starts without a network")
    return "; ".join(parts)


def verdict(outcome: Outcome) -> Judged:
    began = outcome.history.began
    return judged(outcome.seed, summary(outcome), began, outcome.faults, judge(outcome))
