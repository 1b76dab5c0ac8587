"""Report of a run: one summary line, and for violations its seed, faults and violations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.faults.disturbance import Fault

SHOWN = 20  # violations reported


@dataclass(frozen=True, slots=True)
class Violation:
    rule: str
    text: str


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on a finished run."""

    summary: str
    report: str  # empty without violations


def judged(
    seed: int, summary: str, began: float, faults: Sequence[Fault], violations: Sequence[Violation]
) -> Judged:
    if not violations:
        return Judged(summary, "")
    lines = [f"FAULT_SEED={seed}: {len(violations)} violations", summary, "", "Faults:"]
    lines += [_describe_fault(began, fault) for fault in faults]
    lines += [f"[{violation.rule}] {violation.text}" for violation in violations[:SHOWN]]
    if len(violations) > SHOWN:
        lines.append(f"... and {len(violations) - SHOWN} more")
    return Judged(summary, "\n".join(lines))


def _at(began: float, moment: float | None) -> str:
    return "never" if moment is None else f"{moment - began:8.3f} s"


def _describe_fault(began: float, fault: Fault) -> str:
    there, served = _at(began, fault.ended), _at(began, fault.resumed)
    return f"  {_at(began, fault.began)}  {fault.kind:8}{fault.target:8} there {there}  all serve {served}"
