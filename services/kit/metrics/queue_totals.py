"""Sum up what was done with each queue, export it as metrics, and share it between workers in journals."""

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
NAMES = "queue-names"  # file in the folder that workers share
JOURNALS = "queue-figures"
LINES = 4  # a journal with more lines per name is rewritten

Family = CounterMetricFamily | HistogramMetricFamily


class Done(Protocol):
    """The operations on one queue since the last report of the store."""

    @property
    def numbers(self) -> Sequence[int]:
        """Return the counts in the order of COUNTED."""

    @property
    def refused(self) -> Mapping[str, int]:
        """Return refusals by reason."""

    @property
    def put(self) -> Sequence[int]:
        """Return messages per bucket of `measures.QUEUE_PUT_SECONDS`, and those above the last."""

    @property
    def wait(self) -> Sequence[int]:
        """Return the same for `measures.QUEUE_WAIT_SECONDS`."""


@dataclass(slots=True)
class QueueTotals:
    """The sums of `Done`."""

    numbers: list[int] = field(default_factory=lambda: [0] * len(COUNTED))
    refused: Counter[str] = field(default_factory=Counter)
    put: list[int] = field(default_factory=list)  # empty if latencies are off
    wait: list[int] = field(default_factory=list)

    def add(self, done: Done, *, latencies: bool) -> None:
        """Add counts. Lists are replaced, so that a reader in another thread sees either the old or the new one."""
        self.numbers = [a + b for a, b in zip(self.numbers, done.numbers, strict=True)]
        for reason, number in done.refused.items():
            if number:
                self.refused[reason] += number
        if latencies:
            self.put = _sum(self.put, done.put)
            self.wait = _sum(self.wait, done.wait)


def _sum(one: Sequence[int], other: Sequence[int]) -> list[int]:
    return [a + b for a, b in zip(one, other, strict=True)] if one and other else [*(one or other)]


def families(edge: str, totals: Mapping[str, QueueTotals]) -> Iterator[Family]:
    """Yield the metrics, of totals by label."""
    for index, measure in enumerate(COUNTED):
        family = CounterMetricFamily(measure.name, measure.text, labels=["edge", *measure.label_names])
        for label, each in totals.items():
            family.add_metric([edge, label], each.numbers[index])
        yield family
    measure = measures.QUEUE_REFUSED
    refused = CounterMetricFamily(measure.name, measure.text, labels=["edge", *measure.label_names])
    for label, each in totals.items():
        for reason, number in [*each.refused.items()]:
            refused.add_metric([edge, label, reason], number)
    yield refused
    for name, measure in TIMED.items():
        times = {label: counts for label, each in totals.items() if (counts := getattr(each, name))}
        if times:
            yield _histogram(edge, measure, times)


def _histogram(edge: str, measure: Measure, times: Mapping[str, Sequence[int]]) -> HistogramMetricFamily:
    """Return a histogram of counts per bucket; its sum is estimated from the buckets' middles."""
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
    """A worker's file of totals. The last line of each label counts."""

    def __init__(self, folder: Path, pid: int) -> None:
        self._file = folder / f"{JOURNALS}-{pid}"
        self._lines: float = 0

    def write(self, totals: Mapping[str, QueueTotals], changed: set[str], *, rewrite: bool) -> None:
        """Append changed totals, or rewrite the file. Raises OSError; then the next call rewrites it."""
        lines, self._lines = self._lines, math.inf  # until it is written
        if rewrite or lines + len(changed) > LINES * len(totals):
            new = self._file.with_suffix(".new")
            new.write_bytes(b"".join(_line(label, each) for label, each in totals.items()))
            new.replace(self._file)
            lines = len(totals)
        elif changed:
            with self._file.open("ab") as file:
                file.write(b"".join(_line(label, totals[label]) for label in changed))
            lines += len(changed)
        self._lines = lines


def _line(label: str, each: QueueTotals) -> bytes:
    return encode_line([label, each.numbers, each.refused, each.put, each.wait])


class SharedQueueTotals(Collector):
    """Metrics of the totals of all workers, including those that have exited."""

    def __init__(self, folder: Path, edge: str) -> None:
        self._folder = folder
        self._edge = edge

    def collect(self) -> Iterator[Family]:
        """Yield the summed metrics."""
        journals = [*self._folder.glob(f"{JOURNALS}-*[0-9]")]
        if not journals:
            return
        named = read_names(self._folder / NAMES)
        yield from families(self._edge, _summed_up(journals, named))


def merge_totals(folder: Path, pid: int, of_all: int) -> None:
    """Merge the journal of a worker that has exited into that of all such workers, number `of_all`."""
    file, others = (folder / f"{JOURNALS}-{number}" for number in (pid, of_all))
    if file.exists():
        journals = [each for each in (others, file) if each.exists()]
        totals = _summed_up(journals, read_names(folder / NAMES))
        Journal(folder, of_all).write(totals, set(), rewrite=True)
        file.unlink()
    file.with_suffix(".new").unlink(missing_ok=True)


def forget_totals(folder: Path, of_all: int) -> None:
    """Drop totals of labels that were released, so that they begin at 0 if they come again."""
    file = folder / f"{JOURNALS}-{of_all}"
    if not file.exists():
        return
    totals = _summed_up([file], read_names(folder / NAMES))
    if len(totals) < len(_read(file)):
        Journal(folder, of_all).write(totals, set(), rewrite=True)


def _summed_up(journals: Iterable[Path], named: Collection[str]) -> dict[str, QueueTotals]:
    """Return the sums by label, of labels in use."""
    totals: dict[str, QueueTotals] = {}
    for journal in journals:
        for label, each in _read(journal).items():
            if label in named or label == OTHER:
                totals.setdefault(label, QueueTotals()).add(each, latencies=True)
    return totals


def _read(journal: Path) -> dict[str, QueueTotals]:
    lines = parse_lines(journal.read_bytes())
    return {
        label: QueueTotals(numbers, Counter(refused), *times) for label, numbers, refused, *times in lines
    }
