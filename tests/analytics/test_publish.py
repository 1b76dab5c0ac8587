"""Stop the publication at every step: the next run continues from the list, with the same result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyarrow.fs import FileSelector, FileType

from services.analytics.files import Files
from services.analytics.lock import Lock
from services.analytics.places import opened
from services.analytics.publish import (
    Ready,
    plan_file,
    publish,
    read_ready,
    ready_file,
    roll_forward,
    staging,
    tidy,
    unfinished,
)
from services.analytics.state import State
from tests.analytics.objects import BUCKET, objects

RUN = "r2"
HOUR = "day=2026-01-31/hour=09"
SMALL = [f"archive/dead/{HOUR}/r1-000{number}.parquet" for number in range(2)]
EMPTIED = f"aggregates/changes/{HOUR}"
EXPIRED = "archive/samples/day=2025-01-01"
BEFORE = {
    **dict.fromkeys(SMALL, b"small"),
    f"aggregates/deaths/{HOUR}/deaths.parquet": b"old",
    f"{EMPTIED}/changes.parquet": b"rows that no longer exist",
    f"{EXPIRED}/hour=00/r0-0000.parquet": b"too old",
    f"{EXPIRED}/hour=01/r0-0000.parquet": b"too old",
    "archive/dead/day=2026-01-30/hour=09/r1-0000.parquet": b"of another hour",
}
STAGED = {
    f"archive/dead/{HOUR}/{RUN}-c0000.parquet": b"all that is small, joined",
    f"aggregates/deaths/{HOUR}/deaths.parquet": b"new",
    "reports/latest.json": b"{}",
}
READY = Ready(
    RUN,
    [(f"{staging(RUN)}/{target}", target) for target in STAGED],
    [*SMALL, EMPTIED, EXPIRED],
    State(last_run=RUN, newest="2026-01-31T09"),
    {"run": RUN},
)


class Stopped(BaseException):
    """An exception that the program does not catch, in place of a kill."""


class Stopping(Files):
    """Files that stop before the change of this number; None: never."""

    def __init__(self, output: str, at: int | None) -> None:
        super().__init__(output)
        self._at = at
        self.changes = 0

    def move(self, source: str, target: str) -> None:
        self._change(lambda: super(Stopping, self).move(source, target))

    def delete(self, path: str) -> None:
        self._change(lambda: super(Stopping, self).delete(path))

    def write_octets(self, path: str, content: bytes) -> None:
        self._change(lambda: super(Stopping, self).write_octets(path, content))

    def _change(self, change: Callable[[], None]) -> None:
        if self.changes == self._at:
            raise Stopped
        self.changes += 1
        change()


def lay_out(output: str) -> None:
    """Write an output in which a run has staged everything."""
    files = Files(output)
    files.write_octets(plan_file(RUN), b"{}")
    for path, content in BEFORE.items():
        files.write_octets(path, content)
    for path, content in STAGED.items():
        files.write_octets(f"{staging(RUN)}/{path}", content)


def contents(output: str) -> dict[str, bytes]:
    """Return all files by path, except the lock."""
    files, root = opened(output)
    found = files.get_file_info(FileSelector(root, recursive=True))
    paths = [each.path.removeprefix(f"{root}/") for each in found if each.type == FileType.File]
    mine = Files(output)
    return {path: mine.read_octets(path) for path in paths if not path.startswith("runs/lock")}


def carried_out(files: Files, lock: Lock) -> None:
    """Finish earlier runs as the next run does."""
    tidy(files, [RUN])
    for left in unfinished(files, [RUN]):
        if files.exists(ready_file(left)):
            roll_forward(files, read_ready(files, left), lock)
        else:
            publish(files, READY, lock)  # nothing of it was visible: it is staged again with the same names


def check_every_stop(place: Callable[[str], str]) -> None:
    """Stop at every change. place: makes an empty output by name."""
    whole = Stopping(place("whole"), None)
    lay_out(whole.output)
    with Lock(Files(whole.output), 60) as lock:
        publish(whole, READY, lock)
    end = contents(whole.output)
    kept = {"archive/dead/day=2026-01-30/hour=09/r1-0000.parquet": b"of another hour"}
    assert {path: end[path] for path in end if not path.startswith(("runs/", "state."))} == STAGED | kept
    assert sorted(path for path in end if path.startswith("runs/")) == [
        "runs/r2/done.json",
        "runs/r2/plan.json",
    ]
    assert whole.changes > len(READY.moves) + len(READY.removals)
    for at in range(whole.changes):
        output = place(str(at))
        lay_out(output)
        with Lock(Files(output), 60) as lock:
            with pytest.raises(Stopped):
                publish(Stopping(output, at), READY, lock)
            carried_out(Files(output), lock)
        assert contents(output) == end, at


def test_stopped_at_any_step_the_next_run_comes_to_the_same_end(tmp_path: Path) -> None:
    check_every_stop(lambda name: str(tmp_path / name))


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with objects(tmp_path) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield f"s3a://{BUCKET}"


def test_so_it_does_in_a_bucket(bucket: str) -> None:
    """Check a bucket, where a move is a copy and a deletion, and folders are prefixes."""
    check_every_stop(lambda name: f"{bucket}/{name}")


def test_stopped_between_copy_and_deletion_a_bucket_comes_to_the_same_end(bucket: str) -> None:
    """Check a stop inside Arrow's move: the file is in both places."""
    output = f"{bucket}/out"
    lay_out(output)
    with Lock(Files(output), 60) as lock:
        publish(Files(output), READY, lock)
        end = contents(output)
    for number, (source, target) in enumerate(READY.moves):
        output = f"{bucket}/out{number}"
        lay_out(output)
        files, (arrow, root) = Files(output), opened(output)
        with Lock(files, 60) as lock:
            files.write_json(ready_file(RUN), READY.to_json())
            for before, behind in READY.moves[:number]:
                files.move(before, behind)
            arrow.copy_file(f"{root}/{source}", f"{root}/{target}")
            assert files.exists(source)
            carried_out(files, lock)
        assert contents(output) == end, target
