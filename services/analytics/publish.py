"""Publish what a run has staged, by a list of moves that is written first and can be carried out repeatedly.

Nothing of a run is visible until the list is written. Afterwards the run only goes forward: any later run that finds
the list carries it out from its beginning.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import PurePosixPath
from typing import Any

from services.analytics.documents import NOTHING_ELSE, parsed
from services.analytics.files import Files
from services.analytics.lock import Lock
from services.analytics.places import OutputError
from services.analytics.plan import READ, VERSION, Plan
from services.analytics.state import STATE, State
from services.outside.document import read_json

RUNS = "runs"
Move = tuple[str, str]


def folder(run: str) -> str:
    """Return the folder of a run."""
    return f"{RUNS}/{run}"


def staging(run: str) -> str:
    """Return the staging folder of a run."""
    return f"{RUNS}/{run}/staging"


def plan_file(run: str) -> str:
    """Return the path of the plan."""
    return f"{RUNS}/{run}/plan.json"


def ready_file(run: str) -> str:
    """Return the path of the list of moves."""
    return f"{RUNS}/{run}/ready.json"


def done_file(run: str) -> str:
    """Return the path of the summary."""
    return f"{RUNS}/{run}/done.json"


@dataclass(frozen=True, slots=True)
class Ready:
    """The rest of a run: moves, removals, the next state and the summary."""

    __pydantic_config__ = NOTHING_ELSE
    run: str
    moves: list[Move]
    removals: list[str]
    state: State
    done: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the list as a JSON document."""
        return {"version": VERSION, **asdict(self), "state": self.state.to_json()}

    @classmethod
    def from_json(cls, told: Any) -> Ready:
        """Parse a list. Raises ValueError."""
        state = State.from_json(told.get("state")) if isinstance(told, dict) else None
        return parsed(cls, {**told, "state": state} if state else told, READ)


def read_plan(files: Files, run: str) -> Plan:
    """Read a plan. Raises OutputError if it cannot be used; nothing is lost, as the next plan reads the same."""
    octets = files.read_octets(plan_file(run))
    try:
        return Plan.from_json(read_json(octets))
    except ValueError as error:
        raise OutputError(
            f"{files.uri(plan_file(run))} cannot be used: {error}; abandon that run by removing the folder "
            f"{files.uri(folder(run))}: the next run reads the same entries"
        ) from None


def read_ready(files: Files, run: str) -> Ready:
    """Read a list of moves. Raises OutputError; only this list knows what was already moved."""
    octets = files.read_octets(ready_file(run))
    try:
        return Ready.from_json(read_json(octets))
    except ValueError as error:
        raise OutputError(
            f"{files.uri(ready_file(run))} cannot be used: {error}; restore the file or the whole output from a "
            "backup, or give another --output"
        ) from None


def read_state(files: Files) -> State:
    """Read how far runs have come. Raises OutputError if the state is invalid, or missing although runs have ended."""
    if not files.exists(STATE):
        # without the state, everything would be read and counted again
        if any(is_done(files, run) for run in runs(files)):
            raise OutputError(
                f"{files.uri(STATE)} is missing, but runs have ended here: what they have read is unknown; "
                "restore it from a backup, or give another --output"
            )
        return State()
    octets = files.read_octets(STATE)
    try:
        return State.from_json(read_json(octets))
    except ValueError as error:
        raise OutputError(
            f"{files.uri(STATE)} cannot be used: {error}; restore it from a backup, or give another --output"
        ) from None


def publish(files: Files, ready: Ready, lock: Lock) -> None:
    """Write the list and carry it out. All files that it names are synced before."""
    lock.check()
    files.settle(source for source, _ in ready.moves)
    files.settle(_folders(source for source, _ in ready.moves))
    files.write_json(ready_file(ready.run), ready.to_json())
    roll_forward(files, ready, lock)


def roll_forward(files: Files, ready: Ready, lock: Lock) -> None:
    """Carry out a list of moves from its beginning, then write state and summary."""
    lock.check()
    for source, target in ready.moves:
        files.move(source, target)
    for path in ready.removals:
        files.delete(path)
    files.settle(_folders(target for _, target in ready.moves))
    lock.check()
    files.write_json(STATE, ready.state.to_json())
    files.write_json(done_file(ready.run), ready.done)
    files.delete(staging(ready.run))
    files.delete(ready_file(ready.run))


def _folders(paths: Iterable[str]) -> list[str]:
    """Return all folders above these paths."""
    return sorted({str(folder) for path in paths for folder in PurePosixPath(path).parents})


def runs(files: Files) -> list[str]:
    """Return all planned runs that were not removed, in order."""
    return [each.name for each in files.list(RUNS) if each.is_folder]


def unfinished(files: Files, runs: Iterable[str]) -> list[str]:
    """Return the planned runs that did not end; at most one, as later runs finish it first."""
    return [run for run in runs if files.exists(plan_file(run)) and not files.exists(done_file(run))]


def tidy(files: Files, runs: Iterable[str]) -> None:
    """Remove leftovers of finished runs, which may have been killed before they did it."""
    for run in runs:
        there = {each.name for each in files.list(folder(run))}
        if PurePosixPath(done_file(run)).name in there:
            for path in (staging(run), ready_file(run)):
                if PurePosixPath(path).name in there:
                    files.delete(path)


def is_done(files: Files, run: str) -> bool:
    """Return whether a run has ended."""
    return files.exists(done_file(run))
