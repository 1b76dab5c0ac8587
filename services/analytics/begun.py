"""Which runs were begun, and which of them last: one file, so that a run need not ask every one before it.

Written before a run's plan. So the one that was begun last is the only one that may not have ended, and may have left
something of its work; and what `--retention-days` removes is found by name.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from services.analytics.files import Files
from services.analytics.plan import Plan
from services.analytics.publish import RUNS, done_file, folder, plan_file, runs

BEGUN = f"{RUNS}/begun.json"
VERSION = 1
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Begun:
    planned: dict[str, int] = field(default_factory=dict)  # when, in ms by the store's clock, by the run
    last: str = ""  # '': nobody knows

    def in_hand(self) -> list[str]:
        """Those that may not have ended."""
        return [self.last] if self.last else sorted(self.planned)

    def before(self, limit_ms: int) -> list[str]:
        return sorted(run for run, now_ms in self.planned.items() if now_ms < limit_ms)


def read_begun(files: Files) -> Begun:
    """An output of before, or one whose file somebody spoilt, is looked through."""
    if files.exists(BEGUN) and (told := _told(files.read_octets(BEGUN))):
        return told
    return Begun({run: _planned_ms(files, run) for run in runs(files)})


def begin(files: Files, plan: Plan) -> None:
    """Writes down that it is, and then the plan."""
    known, limit_ms = read_begun(files), limit_of(plan)
    removed = {run for run in known.before(limit_ms) if not files.exists(folder(run))}
    planned = {run: now_ms for run, now_ms in known.planned.items() if run not in removed}
    told = {"version": VERSION, "last": plan.run, "planned": {**planned, plan.run: plan.now_ms}}
    files.write_json(BEGUN, told)
    files.write_json(plan_file(plan.run), plan.to_json())


def limit_of(plan: Plan) -> int:
    """Runs that were planned before are not kept, in ms; 0: all are."""
    days = plan.shape.retention_days
    return plan.now_ms - days * DAY_MS if days else 0


def _told(octets: bytes) -> Begun | None:
    """None: it is not what a run writes."""
    try:
        told = json.loads(octets)
        known = Begun({str(run): int(now_ms) for run, now_ms in told["planned"].items()}, told["last"])
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return known if told.get("version") == VERSION and known.last in known.planned else None


def _planned_ms(files: Files, run: str) -> int:
    """0: it does not say, and whoever carries it out finds out why."""
    for path in (done_file(run), plan_file(run)):
        if files.exists(path):
            try:
                told: Any = json.loads(files.read_octets(path))
            except ValueError:
                return 0
            now_ms = told.get("now_ms", 0) if isinstance(told, dict) else 0
            return now_ms if isinstance(now_ms, int) else 0
    return 0
