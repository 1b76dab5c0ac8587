"""Names of queues in metrics are given back where others want them: by a process alone, and by workers together."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.kit.metrics import measures
from services.kit.metrics.queue_names import IDLE_S, OTHER, STAMP_S
from services.kit.metrics.queue_totals import NAMES
from services.kit.metrics.shared_names import SharedNames
from services.kit.workers.dead_worker_metrics import DeadWorkerMetrics, read_lock
from tests.kit.metrics.metered_workers import Clock, Edge, Told


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["alone", "workers"])
def edge(request: pytest.FixtureRequest, clock: Clock, tmp_path: Path) -> Edge:
    """With two names."""
    return Edge(2, clock) if request.param == "alone" else Edge(2, clock, tmp_path, workers=2)


def test_queues_that_come_and_go_do_not_keep_the_names(edge: Edge, clock: Clock) -> None:
    for number in range(100):
        edge.workers[-1].hear(f"session {number}", Told())
        edge.publish()
        clock.now += IDLE_S
    shown = edge.shown()
    assert shown == {"session 98": 1, "session 99": 1}  # each had one
    for measure in (measures.QUEUE_REFUSED.name, f"{measures.QUEUE_PUT_SECONDS.name}_count"):
        assert edge.shown(measure).keys() == shown.keys()


def test_a_name_that_is_used_stays(edge: Edge, clock: Clock) -> None:
    """And so do those that are not, while nobody needs them."""
    edge.workers[0].hear("orders", Told())
    edge.workers[-1].hear("quiet", Told())
    for _ in range(30):
        clock.now += IDLE_S / 10
        edge.workers[0].hear("orders", Told())
        edge.publish()
    assert edge.shown() == {"orders": 31, "quiet": 1}
    edge.workers[-1].hear("new", Told(5))
    edge.publish()
    assert edge.shown() == {"orders": 31, "new": 5}
    edge.workers[0].hear("quiet", Told(2))
    edge.publish()
    assert edge.shown() == {"orders": 31, "new": 5, OTHER: 2}
    clock.now += IDLE_S
    edge.workers[0].hear("orders", Told())
    edge.workers[0].hear("quiet", Told(3))
    edge.publish()
    assert edge.shown() == {"orders": 32, "quiet": 3, OTHER: 2}  # from 0 on: a counter that begins anew


def test_what_another_worker_uses_is_not_idle(clock: Clock, tmp_path: Path) -> None:
    """Each tells the others now and then, and at once of a name that was quiet for long."""
    edge = Edge(1, clock, tmp_path, workers=2)
    one, two = edge.workers
    one.hear("orders", Told())
    for _ in range(int(2 * IDLE_S / STAMP_S)):
        clock.now += STAMP_S
        one.hear("orders", Told())
        one.publish()
    two.hear("new", Told())
    assert edge.shown() == {"orders": 31}
    clock.now += IDLE_S - 1
    one.hear("orders", Told())  # not published yet
    clock.now += 2
    two.hear("new", Told())
    edge.publish()
    assert edge.shown() == {"orders": 32, OTHER: 2}


def test_a_name_that_comes_back_begins_anew(clock: Clock, tmp_path: Path) -> None:
    """By all workers: were one of them to take back later what it had told, that looked like messages."""
    edge = Edge(1, clock, tmp_path, workers=2)
    one, two = edge.workers
    for worker, name, number in ((one, "a", 5), (two, "b", 3), (two, "a", 1)):
        worker.hear(name, Told(number))
        edge.publish()
        assert edge.shown() == {name: number}
        clock.now += IDLE_S


def test_a_name_that_comes_back_begins_anew_also_after_a_death(clock: Clock, tmp_path: Path) -> None:
    """What the dead one told would look like messages, and fall at the next death."""
    edge = Edge(1, clock, tmp_path, workers=2)
    remains = DeadWorkerMetrics(tmp_path)
    one, two = edge.workers
    one.hear("a", Told(5))
    edge.publish()
    edge.workers.remove(one)
    remains.take(1)
    remains.add_up([])
    assert edge.shown() == {"a": 5}
    for name, number in (("b", 3), ("a", 1)):
        clock.now += IDLE_S
        two.hear(name, Told(number))
        with read_lock(tmp_path):
            remains.add_up([])  # somebody reads: later
        edge.publish()
        remains.add_up([])
        assert edge.shown() == {name: number}


def test_workers_have_the_names_in_common(clock: Clock, tmp_path: Path) -> None:
    """Together they have so many, and each knows those of the others, also one that was started anew."""
    edge = Edge(3, clock, tmp_path, workers=2)
    one, two = edge.workers
    one.hear("a", Told())
    two.hear("b\n\0", Told())
    one.hear("b\n\0", Told())
    two.hear("c", Told())
    for worker in edge.workers:
        worker.hear("d", Told())
    three = edge.start()
    for name in ("d", "a", "c"):
        three.hear(name, Told(10))
    edge.publish()
    assert edge.shown() == {"a": 11, "b\n\0": 2, "c": 11, OTHER: 12}


def test_what_an_ended_worker_counted_stays(clock: Clock, tmp_path: Path) -> None:
    edge = Edge(3, clock, tmp_path, workers=2)
    for worker in edge.workers:
        worker.hear("a", Told(4))
    edge.publish()
    edge.workers.pop(0)
    edge.workers[0].hear("a", Told())
    edge.publish()
    assert edge.shown() == {"a": 9}


def test_files_do_not_grow_with_what_is_told(clock: Clock, tmp_path: Path) -> None:
    edge = Edge(2, clock, tmp_path)
    for turn in range(1000):
        clock.now += STAMP_S
        for name in ("a", "b", f"new {turn}"):
            edge.workers[0].hear(name, Told())
        edge.publish()
    assert edge.shown() == {"a": 1000, "b": 1000, OTHER: 1000}
    lines = {file.name: len(file.read_bytes().splitlines()) for file in tmp_path.iterdir()}
    assert all(number <= 4 * 3 for number in lines.values()), lines


def test_a_line_that_is_on_its_way_is_left_for_later(tmp_path: Path) -> None:
    writer, reader = SharedNames(tmp_path / NAMES), SharedNames(tmp_path / NAMES)
    writer.write({"a": 1.0})
    assert reader.news() == (True, [("a", 1.0)])
    with (tmp_path / NAMES).open("ab") as file:
        file.write(b'["b", ')
    assert reader.news() == (False, [])
    with (tmp_path / NAMES).open("ab") as file:
        file.write(b"2.0]\n")
    assert reader.news() == (False, [("b", 2.0)])


def test_names_that_were_idle_are_a_line_each(clock: Clock, tmp_path: Path) -> None:
    """The file is not made anew for each of them: all workers would wait for it, and all that they serve."""
    most = 100
    edge = Edge(most, clock, tmp_path, workers=2)
    one, two = edge.workers
    names = [f"q{number}" for number in range(most)]
    for name in names:
        one.hear(name, Told())
    edge.publish()
    clock.now += IDLE_S - 1
    edge.publish()
    made = (tmp_path / NAMES).stat().st_ino
    with (tmp_path / NAMES).open("rb"):  # its number is no other file's meanwhile
        for name in names:
            one.hear(name, Told())
        assert (tmp_path / NAMES).stat().st_ino == made
    clock.now += 2
    two.hear("new", Told())  # no name is idle: the other worker knows
    edge.publish()
    assert edge.shown() == dict.fromkeys(names, 2) | {OTHER: 1}
    clock.now += STAMP_S
    edge.publish()
    assert len((tmp_path / NAMES).read_bytes().splitlines()) == 1 + most
