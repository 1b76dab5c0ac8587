"""What was done with a queue since it has a name, as numbers, as metrics, and as lines by which workers tell of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from services.kit.measure import Measure
from services.kit.metrics import measures
from services.kit.metrics.json_lines import encode_line, parse_lines
from services.kit.metrics.queue_names import OTHER
from services.kit.metrics.shared_names import read_names

COUNTED = (
    measures.QUEUE_IN,
    measures.QUEUE_IN_BYTES,
    measures.QUEUE_OUT,
    measures.QUEUE_OUT_BYTES,
    measures.QUEUE_ACKED,
    measures.QUEUE_RETURNED,
    measures.QUEUE_REJECTED,
)
TIMED = {"put": measures.QUEUE_PUT_SECONDS, "wait": measures.QUEUE_WAIT_SECONDS}
NAMES = "queue-names"  # in the folder that workers share
JOURNALS = "queue-figures"
LINES = 4  # of a journal, for each name at most: then it is written anew

Family = CounterMetricFamily | HistogramMetricFamily


class Done(Protocol):
    """Since the last time, of one queue; as the store tells it."""

    @property
    def numbers(self) -> Sequence[int]:
        """As COUNTED."""

    @property
    def refused(self) -> Mapping[str, int]:
        """By reason."""

    @property
    def put(self) -> Sequence[int]:
        """Messages by class of `measures.QUEUE_PUT_SECONDS`, one more than it has buckets."""

    @property
    def wait(self) -> Sequence[int]:
        """The same of `measures.QUEUE_WAIT_SECONDS`."""


@dataclass(slots=True)
class Figures:
    """As Done, summed up."""

    numbers: list[int] = field(default_factory=lambda: [0] * len(COUNTED))
    refused: Counter[str] = field(default_factory=Counter)
    put: list[int] = field(default_factory=list)  # empty: nobody asked for latencies
    wait: list[int] = field(default_factory=list)

    def add(self, done: Done, *, latencies: bool) -> None:
        """Lists are made anew: whoever reads in another thread has the old or the new one."""
        self.numbers = [a + b for a, b in zip(self.numbers, done.numbers, strict=True)]
        for reason, number in done.refused.items():
            if number:
                self.refused[reason] += number
        if latencies:
            self.put = _sum(self.put, done.put)
            self.wait = _sum(self.wait, done.wait)


def _sum(one: Sequence[int], other: Sequence[int]) -> list[int]:
    return [a + b for a, b in zip(one, other, strict=True)] if one and other else [*(one or other)]


def families(edge: str, figures: Mapping[str, Figures]) -> Iterator[Family]:
    """By queue's label."""
    for index, measure in enumerate(COUNTED):
        family = CounterMetricFamily(measure.name, measure.text, labels=["edge", *measure.label_names])
        for label, each in figures.items():
            family.add_metric([edge, label], each.numbers[index])
        yield family
    measure = measures.QUEUE_REFUSED
    refused = CounterMetricFamily(measure.name, measure.text, labels=["edge", *measure.label_names])
    for label, each in figures.items():
        for reason, number in [*each.refused.items()]:
            refused.add_metric([edge, label, reason], number)
    yield refused
    for name, measure in TIMED.items():
        times = {label: counts for label, each in figures.items() if (counts := getattr(each, name))}
        if times:
            yield _histogram(edge, measure, times)


def _histogram(edge: str, measure: Measure, times: Mapping[str, Sequence[int]]) -> HistogramMetricFamily:
    """Of times only the classes are known: the sum is reckoned of the buckets' middles."""
    family = HistogramMetricFamily(measure.name, measure.text, labels=["edge", *measure.label_names])
    bounds = [*map(str, measure.buckets), "+Inf"]
    edges = [0.0, *measure.buckets, measure.buckets[-1]]
    middles = [(low + high) / 2 for low, high in pairwise(edges)]
    for label, counts in times.items():
        total = sum(number * middle for number, middle in zip(counts, middles, strict=True))
        buckets = [*zip(bounds, map(float, accumulate(counts)), strict=True)]
        family.add_metric([edge, label], buckets, total)
    return family


class Journal:
    """A file of one worker: of each name the last line counts."""

    def __init__(self, folder: Path, pid: int) -> None:
        self._file = folder / f"{JOURNALS}-{pid}"
        self._lines: float = 0

    def tell(self, figures: Mapping[str, Figures], changed: set[str], *, anew: bool) -> None:
        """anew: some names are gone. Raises OSError; the next time it is made anew."""
        lines, self._lines = self._lines, math.inf  # until it is written
        if anew or lines + len(changed) > LINES * len(figures):
            new = self._file.with_suffix(".new")
            new.write_bytes(b"".join(_line(label, each) for label, each in figures.items()))
            new.replace(self._file)
            lines = len(figures)
        elif changed:
            with self._file.open("ab") as file:
                file.write(b"".join(_line(label, figures[label]) for label in changed))
            lines += len(changed)
        self._lines = lines


def _line(label: str, each: Figures) -> bytes:
    return encode_line([label, each.numbers, each.refused, each.put, each.wait])


class SharedFigures(Collector):
    """Of all workers, also of those that have ended, for whoever answers for all."""

    def __init__(self, folder: Path, edge: str) -> None:
        self._folder = folder
        self._edge = edge

    def collect(self) -> Iterator[Family]:
        journals = [*self._folder.glob(f"{JOURNALS}-*[0-9]")]
        if not journals:
            return
        named = read_names(self._folder / NAMES)
        yield from families(self._edge, _summed_up(journals, named))


def bury_figures(folder: Path, pid: int, of_all: int) -> None:
    """What a worker told that ended goes into the journal of all that did, which has the number `of_all`."""
    file, others = (folder / f"{JOURNALS}-{number}" for number in (pid, of_all))
    if file.exists():
        journals = [each for each in (others, file) if each.exists()]
        figures = _summed_up(journals, read_names(folder / NAMES))
        Journal(folder, of_all).tell(figures, set(), anew=True)
        file.unlink()
    file.with_suffix(".new").unlink(missing_ok=True)


def forget_figures(folder: Path, of_all: int) -> None:
    """What stands there of names that were given back is gone: else they began with it when they come again."""
    file = folder / f"{JOURNALS}-{of_all}"
    if not file.exists():
        return
    figures = _summed_up([file], read_names(folder / NAMES))
    if len(figures) < len(_told(file)):
        Journal(folder, of_all).tell(figures, set(), anew=True)


def _summed_up(journals: Iterable[Path], named: Collection[str]) -> dict[str, Figures]:
    """By label, of those that are names."""
    figures: dict[str, Figures] = {}
    for journal in journals:
        for label, each in _told(journal).items():
            if label in named or label == OTHER:
                figures.setdefault(label, Figures()).add(each, latencies=True)
    return figures


def _told(journal: Path) -> dict[str, Figures]:
    lines = parse_lines(journal.read_bytes())
    return {label: Figures(numbers, Counter(refused), *times) for label, numbers, refused, *times in lines}
