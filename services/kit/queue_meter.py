"""What this process does with each queue, as metrics: only where `metrics.queues` is on (docs/metrics.md).

The store counts it anyway, for its samples; here it is asked for when somebody scrapes, or now and then where that is
another process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from prometheus_client import Counter, Histogram

from services.kit import measures
from services.kit.measure import Measure
from services.kit.queue_names import QueueNames

if TYPE_CHECKING:
    from services.kit.metrics import Metrics

COUNTED = (
    measures.QUEUE_IN,
    measures.QUEUE_IN_BYTES,
    measures.QUEUE_OUT,
    measures.QUEUE_OUT_BYTES,
    measures.QUEUE_ACKED,
    measures.QUEUE_RETURNED,
    measures.QUEUE_REJECTED,
)


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


class QueueMeter:
    def __init__(self, metrics: Metrics, names: QueueNames, *, latencies: bool) -> None:
        self._edge = metrics.edge
        self._names = names
        self._counters = [metrics.counter(measure) for measure in COUNTED]
        self._refused = metrics.counter(measures.QUEUE_REFUSED)
        timed = (("put", measures.QUEUE_PUT_SECONDS), ("wait", measures.QUEUE_WAIT_SECONDS))
        self._times = [(f, one, metrics.histogram(one)) for f, one in timed if latencies]
        self._children: dict[str, list[Counter]] = {}
        self._asks: list[Callable[[], None]] = []

    def meter(self, ask: Callable[[], None]) -> Callable[[str, Done], None]:
        """What a store wants to know of those who meter it."""
        self._asks.append(ask)
        return self.hear

    def publish(self) -> None:
        """The metrics are up to date by then."""
        for ask in self._asks:
            ask()

    def hear(self, name: str, done: Done) -> None:
        label = self._names.label(name)
        children = self._children.get(label)
        if children is None:
            found = [counter.labels(self._edge, label) for counter in self._counters]
            children = self._children[label] = found
        for child, number in zip(children, done.numbers, strict=True):
            if number:
                child.inc(number)
        for reason, number in done.refused.items():
            if number:
                self._refused.labels(self._edge, label, reason).inc(number)
        for field, measure, histogram in self._times:
            add_classes(histogram.labels(self._edge, label), measure, getattr(done, field))


def add_classes(histogram: Histogram, measure: Measure, counts: Sequence[int]) -> None:
    """How many fell into each bucket, of which nothing else is known: the sum is reckoned of the buckets' middles.

    prometheus_client has no public way to add many observations at once; a test holds us to its insides.
    """
    if not any(counts):
        return
    bounds = [0.0, *measure.buckets, measure.buckets[-1]]
    for bucket, number in zip(histogram._buckets, counts, strict=True):
        if number:
            bucket.inc(number)
    middles = ((low + high) / 2 for low, high in pairwise(bounds))
    histogram._sum.inc(sum(number * middle for number, middle in zip(counts, middles, strict=True)))
