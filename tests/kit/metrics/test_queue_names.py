"""Test that labels of queues are released, by one process and by several workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.kit.metrics import measures
from services.kit.metrics.queue_names import IDLE_S, OTHER, STAMP_S
from services.kit.metrics.queue_totals import NAMES
from services.kit.metrics.shared_names import SharedNames
from services.kit.workers.dead_worker_metrics import DeadWorkerMetrics, read_lock
from tests.kit.metrics.metered_workers import Clock, Counts, Edge


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["alone", "workers"])
def edge(request: pytest.FixtureRequest, clock: Clock, tmp_path: Path) -> Edge:
    """Return an edge with two names."""
    return Edge(2, clock) if request.param == "alone" else Edge(2, clock, tmp_path, workers=2)


def test_short_lived_queues_release_their_labels(edge: Edge, clock: Clock) -> None:
    for number in range(100):
        edge.workers[-1].add(f"session {number}", Counts())
        edge.publish()
        clock.now += IDLE_S
    shown = edge.shown()
    assert shown == {"session 98": 1, "session 99": 1}  # each had one name
    for measure in (measures.QUEUE_REFUSED.name, f"{measures.QUEUE_PUT_SECONDS.name}_count"):
        assert edge.shown(measure).keys() == shown.keys()


def test_label_in_use_is_kept(edge: Edge, clock: Clock) -> None:
    """Check that a label in use is kept, and idle labels are kept until their place is needed."""
    edge.workers[0].add("orders", Counts())
    edge.workers[-1].add("quiet", Counts())
    for _ in range(30):
        clock.now += IDLE_S / 10
        edge.workers[0].add("orders", Counts())
        edge.publish()
    assert edge.shown() == {"orders": 31, "quiet": 1}
    edge.workers[-1].add("new", Counts(5))
    edge.publish()
    assert edge.shown() == {"orders": 31, "new": 5}
    edge.workers[0].add("quiet", Counts(2))
    edge.publish()
    assert edge.shown() == {"orders": 31, "new": 5, OTHER: 2}
    clock.now += IDLE_S
    edge.workers[0].add("orders", Counts())
    edge.workers[0].add("quiet", Counts(3))
    edge.publish()
    assert edge.shown() == {"orders": 32, "quiet": 3, OTHER: 2}  # from 0 on: a counter that restarts


def test_label_used_by_another_worker_is_kept(clock: Clock, tmp_path: Path) -> None:
    """Check that a label used by another worker is kept.

    Workers share their names periodically, and a name that was idle for long at once.
    """
    edge = Edge(1, clock, tmp_path, workers=2)
    one, two = edge.workers
    one.add("orders", Counts())
    for _ in range(int(2 * IDLE_S / STAMP_S)):
        clock.now += STAMP_S
        one.add("orders", Counts())
        one.publish()
    two.add("new", Counts())
    assert edge.shown() == {"orders": 31}
    clock.now += IDLE_S - 1
    one.add("orders", Counts())  # not published yet
    clock.now += 2
    two.add("new", Counts())
    edge.publish()
    assert edge.shown() == {"orders": 32, OTHER: 2}


def test_reused_label_starts_at_zero(clock: Clock, tmp_path: Path) -> None:
    """Check that a reused label starts at zero in all workers.

    If one of them took back published counts later, that would look like messages.
    """
    edge = Edge(1, clock, tmp_path, workers=2)
    one, two = edge.workers
    for worker, name, number in ((one, "a", 5), (two, "b", 3), (two, "a", 1)):
        worker.add(name, Counts(number))
        edge.publish()
        assert edge.shown() == {name: number}
        clock.now += IDLE_S


def test_reused_label_starts_at_zero_after_a_worker_death(clock: Clock, tmp_path: Path) -> None:
    """Check that a reused label starts at zero after a worker death.

    Published counts of a dead worker would look like messages, and fall at the next death.
    """
    edge = Edge(1, clock, tmp_path, workers=2)
    dead_metrics = DeadWorkerMetrics(tmp_path)
    one, two = edge.workers
    one.add("a", Counts(5))
    edge.publish()
    edge.workers.remove(one)
    dead_metrics.add(1)
    dead_metrics.merge([])
    assert edge.shown() == {"a": 5}
    for name, number in (("b", 3), ("a", 1)):
        clock.now += IDLE_S
        two.add(name, Counts(number))
        with read_lock(tmp_path):
            dead_metrics.merge([])  # a scrape, later
        edge.publish()
        dead_metrics.merge([])
        assert edge.shown() == {name: number}


def test_workers_share_labels(clock: Clock, tmp_path: Path) -> None:
    """Check that workers share a limited number of labels, and each knows those of the others, also after a restart."""
    edge = Edge(3, clock, tmp_path, workers=2)
    one, two = edge.workers
    one.add("a", Counts())
    two.add("b\n\0", Counts())
    one.add("b\n\0", Counts())
    two.add("c", Counts())
    for worker in edge.workers:
        worker.add("d", Counts())
    three = edge.start()
    for name in ("d", "a", "c"):
        three.add(name, Counts(10))
    edge.publish()
    assert edge.shown() == {"a": 11, "b\n\0": 2, "c": 11, OTHER: 12}


def test_counts_of_an_exited_worker_are_kept(clock: Clock, tmp_path: Path) -> None:
    edge = Edge(3, clock, tmp_path, workers=2)
    for worker in edge.workers:
        worker.add("a", Counts(4))
    edge.publish()
    edge.workers.pop(0)
    edge.workers[0].add("a", Counts())
    edge.publish()
    assert edge.shown() == {"a": 9}


def test_journals_are_rewritten_when_they_grow(clock: Clock, tmp_path: Path) -> None:
    edge = Edge(2, clock, tmp_path)
    for turn in range(1000):
        clock.now += STAMP_S
        for name in ("a", "b", f"new {turn}"):
            edge.workers[0].add(name, Counts())
        edge.publish()
    assert edge.shown() == {"a": 1000, "b": 1000, OTHER: 1000}
    lines = {file.name: len(file.read_bytes().splitlines()) for file in tmp_path.iterdir()}
    assert all(number <= 4 * 3 for number in lines.values()), lines


def test_unfinished_line_is_read_later(tmp_path: Path) -> None:
    writer, reader = SharedNames(tmp_path / NAMES), SharedNames(tmp_path / NAMES)
    writer.write({"a": 1.0})
    assert reader.news() == (True, [("a", 1.0)])
    with (tmp_path / NAMES).open("ab") as file:
        file.write(b'["b", ')
    assert reader.news() == (False, [])
    with (tmp_path / NAMES).open("ab") as file:
        file.write(b"2.0]\n")
    assert reader.news() == (False, [("b", 2.0)])


def test_idle_labels_are_appended_when_used_again(clock: Clock, tmp_path: Path) -> None:
    """Check that idle labels are appended when used again.

    Rewriting the file for each would block all workers and their clients.
    """
    most = 100
    edge = Edge(most, clock, tmp_path, workers=2)
    one, two = edge.workers
    names = [f"q{number}" for number in range(most)]
    for name in names:
        one.add(name, Counts())
    edge.publish()
    clock.now += IDLE_S - 1
    edge.publish()
    made = (tmp_path / NAMES).stat().st_ino
    with (tmp_path / NAMES).open("rb"):  # the inode number is not reused meanwhile
        for name in names:
            one.add(name, Counts())
        assert (tmp_path / NAMES).stat().st_ino == made
    clock.now += 2
    two.add("new", Counts())  # no name is idle: the other worker knows
    edge.publish()
    assert edge.shown() == dict.fromkeys(names, 2) | {OTHER: 1}
    clock.now += STAMP_S
    edge.publish()
    assert len((tmp_path / NAMES).read_bytes().splitlines()) == 1 + most
