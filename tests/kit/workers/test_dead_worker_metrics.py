"""Test that counts of dead workers are kept, in the space of one worker."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from services.kit.metrics.measures import QUEUE_PUT_SECONDS, QUEUE_WAIT_SECONDS
from services.kit.metrics.metrics import Metrics, share
from services.kit.workers.dead_worker_metrics import DeadWorkerMetrics, read_lock
from services.kit.workers.multiprocess_collector import WorkerMetrics
from services.kit.workers.worker_status import WorkerTable

DEATHS = 12
REQUESTS = 'penstock_requests_total{edge="echo",operation="enq",result="ok"}'
SLOW = 'penstock_request_seconds_bucket{edge="echo",le="+Inf",operation="enq"}'
FAST = 'penstock_request_seconds_bucket{edge="echo",le="0.005",operation="enq"}'
SECONDS = 'penstock_request_seconds_sum{edge="echo",operation="enq"}'
HELD = 'penstock_input_held_bytes{edge="echo"}'
PUT_IN = 'penstock_queue_in_messages_total{edge="echo",queue="orders"}'
PUT_SECONDS = 'penstock_queue_put_seconds_count{edge="echo",queue="orders"}'


class Counts(NamedTuple):
    """A report of the store on one queue: three messages were put in."""

    numbers: Sequence[int] = (3, *(0,) * 6)
    refused: Mapping[str, int] = {}
    put: Sequence[int] = (3,) + (0,) * len(QUEUE_PUT_SECONDS.buckets)
    wait: Sequence[int] = (0,) * (len(QUEUE_WAIT_SECONDS.buckets) + 1)


def worker(folder: Path, seconds: float = 0.25) -> int:
    """Run a worker that counts, also one request of that duration, and is killed; return its number."""
    pid = os.fork()
    if not pid:
        share(folder)
        metrics = Metrics("echo")
        metrics.meter_queues(200, latencies=True)
        metrics.requests("enq", "ok").inc(2)
        metrics.seconds("enq").observe(0.003)
        metrics.seconds("enq").observe(seconds)
        metrics.input_held.set(7)
        assert metrics.queues is not None
        metrics.queues.add("orders", Counts())
        metrics.publish_queues()
        os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitpid(pid, 0) == (pid, signal.SIGKILL)
    return pid


def read_samples(folder: Path) -> dict[str, float]:
    lines = WorkerMetrics("echo", folder, WorkerTable(1), os.getpid()).render().decode().splitlines()
    found = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in found}


def check(folder: Path, deaths: int) -> None:
    """Check the counts of so many workers."""
    samples = read_samples(folder)
    assert samples[REQUESTS] == 2 * deaths
    assert (samples[FAST], samples[SLOW]) == (deaths, 2 * deaths)
    assert samples[SECONDS] == pytest.approx(0.253 * deaths)
    assert (samples[PUT_IN], samples[PUT_SECONDS]) == (3 * deaths, 3 * deaths)


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.endswith(".lock")}


def test_files_of_dead_workers_are_merged(tmp_path: Path) -> None:
    dead_metrics = DeadWorkerMetrics(tmp_path)
    left = []
    for death in range(1, DEATHS + 1):
        dead_metrics.add(worker(tmp_path))
        assert HELD not in read_samples(tmp_path)  # no gauge of the dead remains
        check(tmp_path, death)
        dead_metrics.merge([])
        check(tmp_path, death)
        left.append((files(tmp_path), sum(path.stat().st_size for path in tmp_path.iterdir())))
    names, size = left[0]
    assert names == {"counter_0.db", "histogram_0.db", "queue-figures-0", "queue-names"}
    assert left[-1][0] == names
    assert left[-1][1] < size + 100  # some digits


def test_merge_waits_for_a_scrape(tmp_path: Path) -> None:
    dead_metrics = DeadWorkerMetrics(tmp_path)
    dead_metrics.add(worker(tmp_path))
    before = files(tmp_path)
    with read_lock(tmp_path):
        dead_metrics.merge([])
        assert files(tmp_path) == before
    dead_metrics.merge([])
    assert files(tmp_path) != before
    check(tmp_path, 1)


def test_reused_pid_continues_its_files(tmp_path: Path) -> None:
    dead_metrics = DeadWorkerMetrics(tmp_path)
    pid = worker(tmp_path)
    dead_metrics.add(pid)
    before = files(tmp_path)
    dead_metrics.merge([pid])
    dead_metrics.merge([])
    assert files(tmp_path) == before


def test_unmerged_files_are_kept_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    dead_metrics = DeadWorkerMetrics(tmp_path)
    dead_metrics.add(worker(tmp_path))
    in_its_way = tmp_path / "histogram_0.new"
    in_its_way.mkdir()
    with caplog.at_level(logging.WARNING):
        dead_metrics.merge([])
    assert "cannot merge" in caplog.text
    check(tmp_path, 1)
    in_its_way.rmdir()
    dead_metrics.merge([])
    check(tmp_path, 1)
    assert "histogram_0.db" in files(tmp_path)


def test_empty_files_count_nothing(tmp_path: Path) -> None:
    dead_metrics = DeadWorkerMetrics(tmp_path)
    (tmp_path / "counter_7.db").touch()
    dead_metrics.add(7)
    dead_metrics.merge([])
    dead_metrics.add(worker(tmp_path))
    dead_metrics.merge([])
    check(tmp_path, 1)


def test_truncated_journal_line_is_skipped(tmp_path: Path) -> None:
    """Check that a truncated journal line is skipped, at the end or before others, as after a full disk."""
    dead_metrics = DeadWorkerMetrics(tmp_path)
    for begun in (b'["orders", [9, 0', b'["orders", [9, 0["orders", [8, 0]]\n'):
        pid = worker(tmp_path)
        with (tmp_path / f"queue-figures-{pid}").open("ab") as file:
            file.write(begun)
        dead_metrics.add(pid)
    check(tmp_path, 2)
    dead_metrics.merge([])
    check(tmp_path, 2)


def test_merged_sums_do_not_fall(tmp_path: Path) -> None:
    """Check that merged sums do not fall, in any order of addition: Prometheus would see a counter reset."""
    dead_metrics = DeadWorkerMetrics(tmp_path)
    for turn in range(3):
        for number in range(1, 5):
            dead_metrics.add(worker(tmp_path, number / 10 + turn / 3))
        before = read_samples(tmp_path)[SECONDS]
        dead_metrics.merge([])
        assert read_samples(tmp_path)[SECONDS] == before
