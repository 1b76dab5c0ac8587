"""Where a worker cannot open or write what it shares with others, it tells later what it has to tell of queues."""

from __future__ import annotations

import contextlib
import os
import resource
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.kit.metrics.queue_names import IDLE_S, OTHER
from services.kit.metrics.queue_totals import NAMES
from services.kit.metrics.shared_names import SharedNames, read_names
from tests.kit.metrics.metered_workers import Clock, Edge, Told


@pytest.fixture
def clock() -> Clock:
    return Clock()


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
    assert read_names(tmp_path / NAMES) == {"a", "c", "d"}
