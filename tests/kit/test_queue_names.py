"""Names of queues in metrics are given back where others want them: by a process alone, and by workers together."""

from __future__ import annotations

import contextlib
import os
import resource
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from services.kit import measures
from services.kit.queue_figures import NAMES, Journal, SharedFigures
from services.kit.queue_meter import QueueMeter
from services.kit.queue_names import IDLE_S, OTHER, STAMP_S, QueueNames
from services.kit.remains import Remains, unchanged
from services.kit.shared_names import SharedNames, told_by


class Told(NamedTuple):
    """As a store tells it: so many messages were put in."""

    put_in: int = 1

    @property
    def numbers(self) -> tuple[int, ...]:
        return (self.put_in, *(0,) * 6)

    @property
    def refused(self) -> Mapping[str, int]:
        return {"queue_full": 1}

    @property
    def put(self) -> list[int]:
        return [self.put_in] + [0] * len(measures.QUEUE_PUT_SECONDS.buckets)

    @property
    def wait(self) -> list[int]:
        return self.put


@dataclass
class Clock:
    """The same for all workers, as the machine's is."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


class Edge:
    """Workers that share a folder, and who answers for them; without a folder one process."""

    def __init__(self, most: int, clock: Clock, folder: Path | None = None, workers: int = 1) -> None:
        self._most, self._clock, self._folder = most, clock, folder
        self._registry = CollectorRegistry()
        self.workers: list[QueueMeter] = []
        for _ in range(workers):
            self.start()
        self._registry.register(self.workers[0] if folder is None else SharedFigures(folder, "tmq"))

    def start(self) -> QueueMeter:
        shared = None if self._folder is None else SharedNames(self._folder / NAMES)
        journal = None if self._folder is None else Journal(self._folder, len(self.workers) + 1)
        names = QueueNames(self._most, shared, self._clock)
        self.workers.append(QueueMeter("tmq", names, latencies=True, journal=journal))
        return self.workers[-1]

    def publish(self) -> None:
        """All of them, twice: what one gave back the others know."""
        for _ in range(2):
            for worker in self.workers:
                worker.publish()

    def shown(self, name: str = measures.QUEUE_IN.name) -> dict[str, float]:
        """Values by queue."""
        text = generate_latest(self._registry).decode()
        families = [*text_string_to_metric_families(text)]
        samples = [sample for family in families for sample in family.samples]
        return {sample.labels["queue"]: sample.value for sample in samples if sample.name == name}


@pytest.fixture(params=["alone", "workers"])
def edge(request: pytest.FixtureRequest, clock: Clock, tmp_path: Path) -> Edge:
    """With two names."""
    return Edge(2, clock) if request.param == "alone" else Edge(2, clock, tmp_path, workers=2)


def test_queues_that_come_and_go_do_not_keep_the_names(edge: Edge, clock: Clock) -> None:
    for number in range(1000):
        edge.workers[-1].hear(f"session {number}", Told())
        edge.publish()
        clock.now += IDLE_S
    shown = edge.shown()
    assert shown == {"session 998": 1, "session 999": 1}  # each had one
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
    remains = Remains(tmp_path)
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
        with unchanged(tmp_path):
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


@contextlib.contextmanager
def no_descriptor() -> Iterator[None]:
    """None is left, as where too many clients have come: nothing can be opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open(os.devnull, os.O_RDONLY)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    os.close(lowest)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_without_a_descriptor_a_worker_tells_later(
    clock: Clock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its heartbeat goes on meanwhile, and so do its samples: both ask for names."""
    edge = Edge(3, clock, tmp_path, workers=2)
    one, two = edge.workers
    one.hear("a", Told())
    edge.publish()
    clock.now += IDLE_S / 2  # the others would have to be asked
    with no_descriptor():
        one.hear("a", Told(10))
        one.hear("new", Told(100))
        one.publish()
    assert [record.__dict__["action"] for record in caplog.records] == ["queues_untold"]
    two.hear("new", Told(1000))
    edge.publish()
    assert edge.shown() == {"a": 11, OTHER: 100, "new": 1000}
    one.hear("new", Told(10_000))
    edge.publish()
    assert edge.shown() == {"a": 11, OTHER: 100, "new": 11_000}


@pytest.mark.parametrize("stamp", [False, True])
def test_what_has_no_room_is_told_later(
    clock: Clock, tmp_path: Path, caplog: pytest.LogCaptureFixture, *, stamp: bool
) -> None:
    """Neither a name that was given back nor one that was given is so for one worker alone."""
    edge = Edge(2, clock, tmp_path, workers=2)
    one, two = edge.workers
    for name in ("a", "b"):
        one.hear(name, Told())
    edge.publish()
    clock.now += IDLE_S
    one.hear("a", Told())
    if stamp:
        edge.publish()
    in_their_way = [tmp_path / f"{NAMES}.new", tmp_path / "queue-figures-1.new"]
    for folder in in_their_way:
        folder.mkdir()
    one.hear("c", Told(10))
    one.publish()
    two.hear("a", Told())
    for folder in in_their_way:
        folder.rmdir()
    edge.publish()
    assert edge.shown() == {"a": 3, "b": 1, OTHER: 10}
    one.hear("c", Told(100))
    edge.publish()
    assert edge.shown() == {"a": 3, "c": 100, OTHER: 10}


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


@contextlib.contextmanager
def no_room(octets: int) -> Iterator[None]:
    """A file has so many at most: what goes beyond is cut off, as it is by a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (octets, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_the_others_are_told_of_a_use_once_there_is_room(clock: Clock, tmp_path: Path) -> None:
    edge = Edge(1, clock, tmp_path, workers=2)
    one, two = edge.workers
    one.hear("a", Told())
    edge.publish()
    clock.now += IDLE_S - 1
    with no_room((tmp_path / NAMES).stat().st_size):
        one.hear("a", Told(10))
    one.hear("a", Told(100))
    clock.now += 2
    two.hear("new", Told())  # it would have the name, were it idle
    edge.publish()
    assert edge.shown() == {"a": 111, OTHER: 1}


@pytest.mark.parametrize("file", [NAMES, "queue-figures-1"])
def test_a_line_that_was_cut_short_costs_no_other(clock: Clock, tmp_path: Path, file: str) -> None:
    edge = Edge(9, clock, tmp_path, workers=2)
    one, two = edge.workers
    one.hear("a", Told())
    two.hear("a", Told())
    edge.publish()
    with no_room((tmp_path / file).stat().st_size + 5):
        one.hear("b", Told(10))
        one.publish()
    assert not (tmp_path / file).read_bytes().endswith(b"\n")
    for worker in (two, one):
        worker.hear("a", Told())
        worker.hear("c", Told(100))
    edge.publish()
    one.hear("b", Told(1000))
    edge.publish()
    lost = OTHER if file == NAMES else "b"
    expected = Counter({"a": 4, "b": 1000, "c": 200})
    expected[lost] += 10
    assert edge.shown() == expected


def test_a_name_stands_behind_what_a_killed_worker_left(tmp_path: Path) -> None:
    names = SharedNames(tmp_path / NAMES)
    names.write({"a": 1.0})
    with (tmp_path / NAMES).open("ab") as file:
        file.write(b'["b", ')
    names.add("c", 2.0)
    assert names.news() == (False, [])  # its own
    names.add("d", 3.0)
    assert told_by(tmp_path / NAMES) == {"a", "c", "d"}
