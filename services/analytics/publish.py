"""From what a run has staged to what everybody sees: a list of moves, written down first, that can be done again.

Until the list is written nothing of a run is seen. From then on only forward: whoever finds the list carries it out,
from its beginning, however often it was begun.
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
    return f"{RUNS}/{run}"


def staging(run: str) -> str:
    return f"{RUNS}/{run}/staging"


def plan_file(run: str) -> str:
    return f"{RUNS}/{run}/plan.json"


def ready_file(run: str) -> str:
    return f"{RUNS}/{run}/ready.json"


def done_file(run: str) -> str:
    return f"{RUNS}/{run}/done.json"


@dataclass(frozen=True, slots=True)
class Ready:
    """What is left to do of a run."""

    __pydantic_config__ = NOTHING_ELSE
    run: str
    moves: list[Move]
    removals: list[str]
    state: State
    done: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"version": VERSION, **asdict(self), "state": self.state.to_json()}

    @classmethod
    def from_json(cls, told: Any) -> Ready:
        """Raises ValueError."""
        state = State.from_json(told.get("state")) if isinstance(told, dict) else None
        return parsed(cls, {**told, "state": state} if state else told, READ)


def read_plan(files: Files, run: str) -> Plan:
    """Raises OutputError where it cannot be carried out. Nothing is lost with it: the next plan reads the same."""
    octets = files.read_octets(plan_file(run))
    try:
        return Plan.from_json(read_json(octets))
    except ValueError as error:
        raise OutputError(
            f"{files.uri(plan_file(run))} cannot be used: {error}; abandon that run by removing the folder "
            f"{files.uri(folder(run))}: the next run reads the same entries"
        ) from None


def read_ready(files: Files, run: str) -> Ready:
    """Raises OutputError. What has been moved already is known by this list alone."""
    octets = files.read_octets(ready_file(run))
    try:
        return Ready.from_json(read_json(octets))
    except ValueError as error:
        raise OutputError(
            f"{files.uri(ready_file(run))} cannot be used: {error}; restore the file or the whole output from a "
            "backup, or give another --output"
        ) from None


def read_state(files: Files) -> State:
    """How far runs have come. Raises OutputError for a file that no run has written, or that somebody took away."""
    if not files.exists(STATE):
        if any(
            is_done(files, run) for run in runs(files)
        ):  # without it all would be read and counted once more
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
    """Writes the list and carries it out. Before the list is there, all that it names is on the disk."""
    lock.check()
    files.settle(source for source, _ in ready.moves)
    files.settle(_folders(source for source, _ in ready.moves))
    files.write_json(ready_file(ready.run), ready.to_json())
    roll_forward(files, ready, lock)


def roll_forward(files: Files, ready: Ready, lock: Lock) -> None:
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
    """Those in which the paths are, and those in which these are."""
    return sorted({str(folder) for path in paths for folder in PurePosixPath(path).parents})


def runs(files: Files) -> list[str]:
    """All that were ever planned and are not removed, in order."""
    return [each.name for each in files.list(RUNS) if each.is_folder]


def unfinished(files: Files, runs: Iterable[str]) -> list[str]:
    """Of these, those that were planned and did not end; one, as others do not begin before it has ended."""
    return [run for run in runs if files.exists(plan_file(run)) and not files.exists(done_file(run))]


def tidy(files: Files, runs: Iterable[str]) -> None:
    """Removes what those of them that are done have left of their work: they may have been killed just before."""
    for run in runs:
        there = {each.name for each in files.list(folder(run))}
        if PurePosixPath(done_file(run)).name in there:
            for path in (staging(run), ready_file(run)):
                if PurePosixPath(path).name in there:
                    files.delete(path)


def is_done(files: Files, run: str) -> bool:
    return files.exists(done_file(run))
