"""Test the status that workers share."""

from __future__ import annotations

import os

import pytest

from services.kit.workers import worker_status as board_module
from services.kit.workers.worker_status import WorkerState, WorkerTable


def test_readiness_needs_all_workers() -> None:
    board = WorkerTable(2)
    assert board.readiness.unready() == "worker 0: absent"
    board.report(0, WorkerState.READY)
    assert board.readiness.unready() == "worker 1: absent"
    board.report(1, WorkerState.STARTING)
    assert board.readiness.unready() == "worker 1: starting"
    board.report(1, WorkerState.UNREADY, "the store is away: ünreachable")
    assert board.readiness.unready() == "worker 1: the store is away: ünreachable"
    board.report(1, WorkerState.READY)
    assert board.readiness.unready() is None
    board.drain()
    assert board.readiness.unready() == "accepting: draining"


def test_long_reason_is_truncated() -> None:
    board = WorkerTable(1)
    board.report(0, WorkerState.UNREADY, "ü" * 500)
    assert str(board.readiness.unready()).startswith("worker 0: üü")


def test_deaths_are_counted() -> None:
    board = WorkerTable(1)
    board.report(0, WorkerState.READY)
    for _ in range(300):
        board.count_death()
    assert (board.deaths(), board.readiness.unready()) == (300, None)
    board.drain()
    assert (board.deaths(), board.readiness.unready()) == (300, "accepting: draining")


def test_child_and_parent_share_the_page() -> None:
    board = WorkerTable(1)
    pid = os.fork()
    if not pid:
        board.report(0, WorkerState.READY)
        os._exit(0)
    os.waitpid(pid, 0)
    assert board.readiness.unready() is None


def test_silent_worker_is_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    board = WorkerTable(2)
    board.report(0, WorkerState.READY)
    board.report(1, WorkerState.ABSENT, "ended")
    assert board.stuck() is None
    monkeypatch.setattr(board_module, "STUCK_S", -1.0)
    assert str(board.stuck()).startswith("worker 0: silent for ")
    board.report(0, WorkerState.ABSENT)
    assert board.stuck() is None  # it is dead, not stuck: its supervisor restarts it
