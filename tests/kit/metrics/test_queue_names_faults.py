"""Test workers that cannot open or write shared files: they publish later."""

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
from tests.kit.metrics.metered_workers import Clock, Counts, Edge


@pytest.fixture
def clock() -> Clock:
    return Clock()


@contextlib.contextmanager
def no_descriptor() -> Iterator[None]:
    """Allow no further descriptors, as with too many clients: no file can be opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open(os.devnull, os.O_RDONLY)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    os.close(lowest)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_lack_of_descriptors_delays_publication(
    clock: Clock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Check that a lack of descriptors delays publication, but no heartbeats and samples, which both use names."""
    edge = Edge(3, clock, tmp_path, workers=2)
    one, two = edge.workers
    one.add("a", Counts())
    edge.publish()
    clock.now += IDLE_S / 2  # it would have to read the others' names
    with no_descriptor():
        one.add("a", Counts(10))
        one.add("new", Counts(100))
        one.publish()
    assert [record.__dict__["action"] for record in caplog.records] == ["queues_untold"]
    two.add("new", Counts(1000))
    edge.publish()
    assert edge.shown() == {"a": 11, OTHER: 100, "new": 1000}
    one.add("new", Counts(10_000))
    edge.publish()
    assert edge.shown() == {"a": 11, OTHER: 100, "new": 11_000}


@pytest.mark.parametrize("stamp", [False, True])
def test_full_disk_delays_publication(
    clock: Clock, tmp_path: Path, caplog: pytest.LogCaptureFixture, *, stamp: bool
) -> None:
    """Check that a full disk delays publication: a name is never released or taken by one worker alone."""
    edge = Edge(2, clock, tmp_path, workers=2)
    one, two = edge.workers
    for name in ("a", "b"):
        one.add(name, Counts())
    edge.publish()
    clock.now += IDLE_S
    one.add("a", Counts())
    if stamp:
        edge.publish()
    in_their_way = [tmp_path / f"{NAMES}.new", tmp_path / "queue-figures-1.new"]
    for folder in in_their_way:
        folder.mkdir()
    one.add("c", Counts(10))
    one.publish()
    two.add("a", Counts())
    for folder in in_their_way:
        folder.rmdir()
    edge.publish()
    assert edge.shown() == {"a": 3, "b": 1, OTHER: 10}
    one.add("c", Counts(100))
    edge.publish()
    assert edge.shown() == {"a": 3, "c": 100, OTHER: 10}


@contextlib.contextmanager
def no_room(octets: int) -> Iterator[None]:
    """Limit the size of files: writes beyond it are cut off, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (octets, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_label_use_is_shared_once_the_disk_has_space(clock: Clock, tmp_path: Path) -> None:
    edge = Edge(1, clock, tmp_path, workers=2)
    one, two = edge.workers
    one.add("a", Counts())
    edge.publish()
    clock.now += IDLE_S - 1
    with no_room((tmp_path / NAMES).stat().st_size):
        one.add("a", Counts(10))
    one.add("a", Counts(100))
    clock.now += 2
    two.add("new", Counts())  # it would get the name if that were idle
    edge.publish()
    assert edge.shown() == {"a": 111, OTHER: 1}


@pytest.mark.parametrize("file", [NAMES, "queue-figures-1"])
def test_truncated_line_does_not_affect_others(clock: Clock, tmp_path: Path, file: str) -> None:
    edge = Edge(9, clock, tmp_path, workers=2)
    one, two = edge.workers
    one.add("a", Counts())
    two.add("a", Counts())
    edge.publish()
    with no_room((tmp_path / file).stat().st_size + 5):
        one.add("b", Counts(10))
        one.publish()
    assert not (tmp_path / file).read_bytes().endswith(b"\n")
    for worker in (two, one):
        worker.add("a", Counts())
        worker.add("c", Counts(100))
    edge.publish()
    one.add("b", Counts(1000))
    edge.publish()
    lost = OTHER if file == NAMES else "b"
    expected = Counter({"a": 4, "b": 1000, "c": 200})
    expected[lost] += 10
    assert edge.shown() == expected


def test_label_is_appended_after_a_truncated_line(tmp_path: Path) -> None:
    names = SharedNames(tmp_path / NAMES)
    names.write({"a": 1.0})
    with (tmp_path / NAMES).open("ab") as file:
        file.write(b'["b", ')
    names.add("c", 2.0)
    assert names.news() == (False, [])  # its own name
    names.add("d", 3.0)
    assert read_names(tmp_path / NAMES) == {"a", "c", "d"}
