"""Keep the list of begun runs in one file, so that a run need not check every earlier one.

It is written before a run's plan: only the run begun last may be unfinished and have left files. `--retention-days`
also finds old runs in it. Versions that do not have this file may have begun other runs; these are found by their
folders and checked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from services.analytics.files import Files
from services.analytics.places import OutputError
from services.analytics.plan import Plan
from services.analytics.publish import RUNS, folder, plan_file
from services.analytics.summaries import Summaries
from services.outside.document import read_json

BEGUN = f"{RUNS}/begun.json"
VERSION = 1
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Begun:
    # time of planning in ms by the store's clock, by run; 0: unknown
    """The runs that were begun, and the last of them."""

    planned: dict[str, int] = field(default_factory=dict)
    last: str = ""  # '': unknown
    others: tuple[str, ...] = ()  # runs that are not in the file

    def in_hand(self) -> list[str]:
        """Return the runs that may be unfinished."""
        return sorted({self.last, *self.others} if self.last else self.planned)

    def before(self, limit_ms: int) -> list[str]:
        """Return the runs that were planned before a time; those with an unknown time are left out."""
        return sorted(run for run, now_ms in self.planned.items() if 0 < now_ms < limit_ms)


def read_begun(files: Files, ended: Summaries) -> Begun:
    """Read the list; if it is missing or damaged, check all runs. Raises OutputError."""
    name, listed = PurePosixPath(BEGUN).name, files.list(RUNS)
    folders = [each.name for each in listed if each.is_folder]
    if name in folders:
        raise OutputError(
            f"{files.uri(BEGUN)} is a folder, but a run writes a file there: remove it; the next run rebuilds the file"
        )
    told = _told(files.read_octets(BEGUN)) if name in {each.name for each in listed} else None
    known = told or Begun()
    others = [run for run in folders if run not in known.planned]
    asked = {run: _planned_ms(files, ended, run) for run in others}
    return Begun({**known.planned, **asked}, known.last, tuple(others))


def begin(files: Files, known: Begun, plan: Plan) -> None:
    """Write the run to the list, then its plan. known: the list as read before."""
    limit_ms = limit_of(plan)
    removed = {run for run in known.before(limit_ms) if not files.exists(folder(run))}
    planned = {run: now_ms for run, now_ms in known.planned.items() if run not in removed}
    told = {"version": VERSION, "last": plan.run, "planned": {**planned, plan.run: plan.now_ms}}
    files.write_json(BEGUN, told)
    files.write_json(plan_file(plan.run), plan.to_json())


def limit_of(plan: Plan) -> int:
    """Return the time in ms before which planned runs are removed; 0: none is."""
    days = plan.shape.retention_days
    return plan.now_ms - days * DAY_MS if days else 0


def _told(octets: bytes) -> Begun | None:
    """Return the parsed list, or None if it is invalid."""
    try:
        told = read_json(octets)
        known = Begun({str(run): int(now_ms) for run, now_ms in told["planned"].items()}, str(told["last"]))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return known if told.get("version") == VERSION and known.last in known.planned else None


def _planned_ms(files: Files, ended: Summaries, run: str) -> int:
    """Return when a run was planned; 0 if unknown, as finishing it will report the error."""
    octets = ended.octets(run)
    if octets is None:
        octets = files.octets_if_there(plan_file(run))
    try:
        told: Any = read_json(octets) if octets is not None else None
    except ValueError:
        return 0
    now_ms = told.get("now_ms", 0) if isinstance(told, dict) else 0
    return now_ms if isinstance(now_ms, int) else 0
