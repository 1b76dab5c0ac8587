"""Verdict on a run; for violations, report the seed, the faults and the violations."""

from __future__ import annotations

from tests.faults.rqp.checker import check, count
from tests.faults.rqp.run import Outcome
from tests.faults.run_report import Judged, Violation, judged


def judge(outcome: Outcome) -> list[Violation]:
    found = [Violation("stuck", text) for text in outcome.failures]
    found += [Violation("logged", text) for text in outcome.logged]
    return found + check(outcome.history.books.values(), outcome.faults, outcome.alone)


def summary(outcome: Outcome) -> str:
    """Return one line with the run's parameters and counts."""
    parts = [f"seed {outcome.seed}", f"{outcome.seconds:.0f} s", f"{outcome.kills} kills"]
    parts.append(f"{len(outcome.faults)} faults")
    for protocol in ("rqp-mca", "rqp-cast"):
        for is_certain in (True, False):
            books = [
                book
                for way, book in outcome.history.books.items()
                if (way.protocol, way.is_certain) == (protocol, is_certain)
            ]
            n = count(books)
            kind = f"{protocol[4:]} {'certain' if is_certain else 'uncertain'}"
            parts.append(
                f"{kind}: {n.put} put, {n.unknown} unknown, {n.arrived} arrived, {n.again} again, "
                f"{n.dead} dead, {n.gone} gone"
            )
    if outcome.alone is not None:
        parts.append(f"while stores alone died, edges counted {dict(outcome.alone.counted)} as lost")
    if outcome.healed_s is not None:
        parts.append(f"healed after {outcome.healed_s:.1f} s")
    return "; ".join(parts)


def verdict(outcome: Outcome) -> Judged:
    began = outcome.history.began
    return judged(outcome.seed, summary(outcome), began, outcome.faults, judge(outcome))
