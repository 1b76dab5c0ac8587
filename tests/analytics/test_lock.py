"""Test damaged locks, and a file system that fails temporarily."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from services.analytics.files import Files
from services.analytics.lock import LOCK, Lock, Locked
from services.analytics.places import OutputError
from services.analytics.publish import done_file, plan_file, ready_file, staging, tidy
from tests.servers import eventually

# of a run that stopped renewing it
ELSEWHERE = {"owner": "x", "host": "elsewhere", "pid": 1, "boot": "another", "lock_s": 0.5, "renewed": 3}


@pytest.mark.parametrize(
    "spoilt", ["", "[]", '{"lock_s": "long"}', '{"pid": [], "boot": 1}', json.dumps(ELSEWHERE)]
)
def test_lock_that_is_not_renewed_may_be_taken_when_its_time_is_over(tmp_path: Path, spoilt: str) -> None:
    files = Files(str(tmp_path))
    files.write_octets(LOCK, spoilt.encode())
    begin = time.monotonic()
    with Lock(files, 0.5):
        assert time.monotonic() - begin >= 0.5
        assert files.read_json(LOCK)["pid"] == os.getpid()
    assert not files.exists(LOCK)


def test_a_lock_that_is_spoilt_while_it_is_held_is_lost(tmp_path: Path) -> None:
    files = Files(str(tmp_path))
    with Lock(files, 60) as lock:
        files.write_octets(LOCK, b"")
        with pytest.raises(Locked, match="taken by an unknown host"):
            lock.check()


def test_a_lock_that_was_lost_unseen_is_left_to_whoever_has_it(tmp_path: Path) -> None:
    """Check a run that paused until another took the lock: it leaves the lock alone at its end."""
    files, other = Files(str(tmp_path)), Lock(Files(str(tmp_path)), 60)
    with Lock(files, 60):
        files.delete(LOCK)  # as a run does with an expired lock
        other.__enter__()
    other.check()
    other.__exit__()
    assert not files.exists(LOCK)


def test_a_failure_of_a_moment_ends_no_renewal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, write, failed = Files(str(tmp_path)), Files.write_json, list[str]()

    def fails_twice(self: Files, path: str, content: Any) -> None:
        if len(failed) < 2:
            failed.append(path)
            raise OutputError("output: 503 slow down")
        write(self, path, content)

    with Lock(files, 0.4):
        monkeypatch.setattr(Files, "write_json", fails_twice)
        eventually(lambda: files.read_json(LOCK)["renewed"] > 2)
    assert failed == [LOCK, LOCK]


def test_a_lock_is_on_the_disk_before_it_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settled, link = list[str](), os.link
    settle, links = os.fsync, list[bool]()

    def seen(opened: int) -> None:
        settled.append(os.readlink(f"/proc/self/fd/{opened}"))
        settle(opened)

    def linked(source: str, target: str) -> None:
        links.append(source in settled)
        link(source, target)

    monkeypatch.setattr(os, "fsync", seen)
    monkeypatch.setattr(os, "link", linked)
    with Lock(Files(str(tmp_path)), 60):
        assert links == [True]


def test_what_a_run_that_is_done_has_left_is_removed(tmp_path: Path) -> None:
    files = Files(str(tmp_path))
    for run in ("done", "begun"):
        for path in (plan_file(run), ready_file(run), f"{staging(run)}/archive/x"):
            files.write_octets(path, b"{}")
    files.write_octets(done_file("done"), b"{}")
    tidy(files, ["begun", "done", "other"])
    assert [each.name for each in files.list("runs/done")] == ["done.json", "plan.json"]
    assert [each.name for each in files.list("runs/begun")] == ["plan.json", "ready.json", "staging"]
