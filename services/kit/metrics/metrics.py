"""Prometheus metrics of one edge process: the base ones of the kit, and factories for the edge's own.

Everything is made lazily, in the process that counts: with several workers prometheus_client must have been
switched to its multiprocess mode (`share`) before the first metric is made. Hot paths keep the children that
`requests` and `seconds` hand out, and count once for a run of requests.
"""

from __future__ import annotations

import collections
import functools
import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, values
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from services.kit.measure import SECONDS_BUCKETS, Measure
from services.kit.metrics import measures
from services.kit.metrics.build import Build
from services.kit.metrics.queue_meter import QueueMeter
from services.kit.metrics.queue_names import QueueNames
from services.kit.metrics.queue_totals import NAMES, Done, Journal
from services.kit.metrics.shared_names import SharedNames

CONTENT_TYPE = CONTENT_TYPE_LATEST
# Else each counter has a second series, of when it began: nobody asks for it.
prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]


Item = Mapping[str, Any]  # as JSON has it
# What the process says to a question with these arguments. It is looked at item by item, while other work goes on, and
# no further than there is room. Raises ValueError for arguments that are none.
Topic = Callable[[Mapping[str, Any]], Iterable[Item]]


class Latencies:
    """Times of one kind of request since the last look: telling a histogram of each would cost more than a request."""

    __slots__ = ("_counts", "_seconds")

    def __init__(self) -> None:
        self._counts = [0] * (len(SECONDS_BUCKETS) + 1)
        self._seconds = 0.0

    def note(self, seconds: float, number: int) -> None:
        """`number` requests took so long, each."""
        self._counts[bisect_left(SECONDS_BUCKETS, seconds)] += number
        self._seconds += seconds * number

    def publish(self, histogram: Histogram) -> None:
        """Adds them to a child of `Metrics.seconds` and begins anew.

        prometheus_client has no public way to add many observations at once; a test holds us to its insides.
        """
        counts, self._counts = self._counts, [0] * len(self._counts)
        seconds, self._seconds = self._seconds, 0.0
        for bucket, number in zip(histogram._buckets, counts, strict=True):  # noqa: SLF001 - many observations at once
            if number:
                bucket.inc(number)
        if seconds:
            histogram._sum.inc(seconds)  # noqa: SLF001 - many observations at once


class Traffic:
    """Connections of a listener or dialler and their bytes: plain numbers, because every chunk counts here."""

    __slots__ = ("_told", "open", "opened", "received", "sent")

    def __init__(self) -> None:
        self.open = 0  # now
        self.opened = 0
        self.received = 0
        self.sent = 0
        self._told = (0, 0)

    def since(self) -> tuple[int, int]:
        """Bytes received and sent since this was last asked."""
        received, sent = self._told
        self._told = (self.received, self.sent)
        return self.received - received, self.sent - sent


class Figures(NamedTuple):
    """What a process tells of itself in the store's samples (docs/store.md): all but `connections` since it began."""

    connections: int  # open now
    opened: int
    received_octets: int
    sent_octets: int
    refused: dict[str, int]  # connections and requests, by reason


class StoreObserver:
    """What the store is given: it counts refusals and alarms of the store, asks for the figures, and meters queues.

    With the number 0 a counter is there from then on. It also says what the process is (`about`), and what it can be
    asked (`topics`), and where its traces go.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self.topics: dict[str, Topic] = {}
        self.about: Callable[[], Mapping[str, Any]] = dict
        self.recorder: object | None = None  # where traces go; None: nothing is traced

    def __call__(self, reason: str, number: int) -> None:
        self._metrics.store_events.labels(self._metrics.edge, reason).inc(number)

    def took(self, seconds: float) -> None:
        """The store answered a call so long after it was sent."""
        self._metrics.store_calls.note(seconds, 1)

    def figures(self) -> Figures:
        traffics = self._metrics.traffics
        return Figures(
            sum(traffic.open for traffic in traffics),
            sum(traffic.opened for traffic in traffics),
            sum(traffic.received for traffic in traffics),
            sum(traffic.sent for traffic in traffics),
            dict(self._metrics.refused),
        )

    def meter(self, ask: Callable[[], None]) -> Callable[[str, Done], None] | None:
        """Who is to hear what is done with each queue; None: nobody is."""
        queues = self._metrics.queues
        return None if queues is None else queues.meter(ask)


class Metrics:
    """The metrics of one process. Every name is `penstock_...`, every metric has the label `edge`."""

    def __init__(self, edge: str) -> None:
        self.edge = edge
        self.registry = CollectorRegistry()
        if _SHARED not in os.environ:  # the collectors of a process do not merge
            prometheus_client.ProcessCollector(registry=self.registry)
            prometheus_client.PlatformCollector(registry=self.registry)
            prometheus_client.GCCollector(registry=self.registry)
            self.registry.register(Build())
        self.connections = self.gauge(measures.CONNECTIONS)
        self.opened = self.counter(measures.OPENED)
        self.received_bytes = self.counter(measures.RECEIVED)
        self.sent_bytes = self.counter(measures.SENT)
        self.certificates = self.gauge(measures.CERTIFICATE_ENDS)
        self.refusals = self.counter(measures.REFUSALS)
        self._requests = self.counter(measures.REQUESTS)
        self._seconds = self.histogram(measures.REQUEST_SECONDS)
        self.local_errors = self.counter(measures.LOCAL_ERRORS).labels(edge)
        self.input_held = self.gauge(measures.INPUT_HELD).labels(edge)
        self.output_held = self.gauge(measures.OUTPUT_HELD).labels(edge)
        self.store_events = self.counter(measures.STORE_EVENTS)
        self.store_calls = Latencies()
        self._store_seconds = self.histogram(measures.STORE_CALL_SECONDS).labels(edge)
        self.ready = self.gauge(measures.READY).labels(edge)
        self.queues: QueueMeter | None = None
        self.traffics: list[Traffic] = []  # of all listeners and diallers
        self.refused: collections.Counter[str] = collections.Counter()  # as `refusals`
        # Every refusal and alarm of the store has its counter: to be given to the store as its observer.
        self.store_observer = StoreObserver(self)
        self.requests = functools.cache(self._request_counter)
        self.seconds = functools.cache(self._request_seconds)

    def meter_queues(self, most: int, *, latencies: bool) -> None:
        """From now on metrics tell of each queue, too, of `most` by name. Before the store is made."""
        shared = os.environ.get(_SHARED)
        if shared is None:
            self.queues = QueueMeter(self.edge, QueueNames(most), latencies=latencies)
            self.registry.register(self.queues)
            return
        names = QueueNames(most, SharedNames(Path(shared) / NAMES))
        journal = Journal(Path(shared), os.getpid())
        self.queues = QueueMeter(self.edge, names, latencies=latencies, journal=journal)

    def counter(self, one: Measure) -> Counter:
        """The first label is always `edge`."""
        return Counter(one.name, one.text, ("edge", *one.label_names), registry=self.registry)

    def gauge(self, one: Measure) -> Gauge:
        """The first label is always `edge`."""
        labels = ("edge", *one.label_names)
        return Gauge(one.name, one.text, labels, registry=self.registry, multiprocess_mode=one.merge)

    def histogram(self, one: Measure) -> Histogram:
        """The first label is always `edge`."""
        labels = ("edge", *one.label_names)
        return Histogram(one.name, one.text, labels, registry=self.registry, buckets=one.buckets)

    def count_refusal(self, reason: str) -> None:
        self.refused[reason] += 1
        self.refusals.labels(self.edge, reason).inc()

    def render(self) -> bytes:
        """The text of /metrics; what is told of queues is as of the last `publish_queues`."""
        return generate_latest(self.registry)

    def publish_store_calls(self) -> None:
        """What is told of how fast the store answers is up to date by then."""
        self.store_calls.publish(self._store_seconds)

    def publish_queues(self) -> None:
        """What is told of each queue is up to date by then."""
        if self.queues is not None:
            self.queues.publish()

    def _request_counter(self, operation: str, result: str) -> Counter:
        """The child to keep: `metrics.requests("enq", "ok").inc(len(run))`. Cached as `requests`."""
        return self._requests.labels(self.edge, operation, result)

    def _request_seconds(self, operation: str) -> Histogram:
        """The child to keep: `metrics.seconds("enq").observe(0.003)`. Cached as `seconds`."""
        return self._seconds.labels(self.edge, operation)


_SHARED = "PROMETHEUS_MULTIPROC_DIR"


def share(folder: Path) -> None:
    """From now on the metrics made in this process, and in those it forks, live in files in `folder`.

    prometheus_client decides this when it is imported; it may have been imported long ago, so say it again.
    """
    os.environ[_SHARED] = str(folder)
    values.ValueClass = values.get_value_class()  # type: ignore[no-untyped-call]
