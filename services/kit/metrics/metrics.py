"""Prometheus metrics of one edge process: the kit's own, and factories for those of the edge.

Metrics are made in the process that counts: with several workers, prometheus_client must be in multiprocess mode
(`share`) before the first metric is made. Hot paths keep the children that `requests` and `seconds` return, and count
once per run of requests.
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
# Otherwise each counter has a second series, of its creation time.
prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]


Item = Mapping[str, Any]  # JSON
# Answers a request with these arguments. Items are consumed one by one, between other work, until the reply is full.
# Raises ValueError for bad arguments.
Topic = Callable[[Mapping[str, Any]], Iterable[Item]]


class Latencies:
    """Latencies of one operation since the last `publish`: one histogram call per request would be too slow."""

    __slots__ = ("_counts", "_seconds")

    def __init__(self) -> None:
        self._counts = [0] * (len(SECONDS_BUCKETS) + 1)
        self._seconds = 0.0

    def note(self, seconds: float, number: int) -> None:
        """Count `number` requests that took this long each."""
        self._counts[bisect_left(SECONDS_BUCKETS, seconds)] += number
        self._seconds += seconds * number

    def publish(self, histogram: Histogram) -> None:
        """Add the latencies to a child of `Metrics.seconds`, and reset them.

        prometheus_client has no public API to add many observations at once; a test checks these internals.
        """
        counts, self._counts = self._counts, [0] * len(self._counts)
        seconds, self._seconds = self._seconds, 0.0
        for bucket, number in zip(histogram._buckets, counts, strict=True):  # noqa: SLF001 - see above
            if number:
                bucket.inc(number)
        if seconds:
            histogram._sum.inc(seconds)  # noqa: SLF001 - see above


class Traffic:
    """Connections of a listener or dialler and their bytes, as plain numbers: updated for every chunk."""

    __slots__ = ("_published", "open", "opened", "received", "sent")

    def __init__(self) -> None:
        self.open = 0  # now
        self.opened = 0
        self.received = 0
        self.sent = 0
        self._published = (0, 0)

    def since(self) -> tuple[int, int]:
        """Return the bytes received and sent since the last call."""
        received, sent = self._published
        self._published = (self.received, self.sent)
        return self.received - received, self.sent - sent


class ProcessCounters(NamedTuple):
    """A process's counters since its start, for the store's samples (docs/store.md)."""

    connections: int  # currently open
    opened: int
    received_octets: int
    sent_octets: int
    refused: dict[str, int]  # connections and requests, by reason


class StoreObserver:
    """The store's view of this process: counters of its events, this process's counters, topics and traces.

    Calling it with the number 0 exports a counter as 0.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self.topics: dict[str, Topic] = {}
        self.about: Callable[[], Mapping[str, Any]] = dict
        self.recorder: object | None = None  # of traces; None: tracing is off

    def __call__(self, reason: str, number: int) -> None:
        """Count refusals or alarms of the store."""
        self._metrics.store_events.labels(self._metrics.edge, reason).inc(number)

    def took(self, seconds: float) -> None:
        """Count a call to the store that took this long."""
        self._metrics.store_calls.note(seconds, 1)

    def figures(self) -> ProcessCounters:
        """Return this process's counters."""
        traffics = self._metrics.traffics
        return ProcessCounters(
            sum(traffic.open for traffic in traffics),
            sum(traffic.opened for traffic in traffics),
            sum(traffic.received for traffic in traffics),
            sum(traffic.sent for traffic in traffics),
            dict(self._metrics.refused),
        )

    def meter(self, ask: Callable[[], None]) -> Callable[[str, Done], None] | None:
        """Return the function that takes each queue's counts, after `ask`; None if queues are not counted."""
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
        self.store_observer = StoreObserver(self)
        self.requests = functools.cache(self._request_counter)
        self.seconds = functools.cache(self._request_seconds)

    def meter_queues(self, most: int, *, latencies: bool) -> None:
        """Export metrics per queue, with labels for `most` queues. Call it before the store is made."""
        shared = os.environ.get(_SHARED)
        if shared is None:
            self.queues = QueueMeter(self.edge, QueueNames(most), latencies=latencies)
            self.registry.register(self.queues)
            return
        names = QueueNames(most, SharedNames(Path(shared) / NAMES))
        journal = Journal(Path(shared), os.getpid())
        self.queues = QueueMeter(self.edge, names, latencies=latencies, journal=journal)

    def counter(self, one: Measure) -> Counter:
        """Return a counter with the label `edge` and its own labels."""
        return Counter(one.name, one.text, ("edge", *one.label_names), registry=self.registry)

    def gauge(self, one: Measure) -> Gauge:
        """Return a gauge with the label `edge` and its own labels."""
        labels = ("edge", *one.label_names)
        return Gauge(one.name, one.text, labels, registry=self.registry, multiprocess_mode=one.merge)

    def histogram(self, one: Measure) -> Histogram:
        """Return a histogram with the label `edge` and its own labels."""
        labels = ("edge", *one.label_names)
        return Histogram(one.name, one.text, labels, registry=self.registry, buckets=one.buckets)

    def count_refusal(self, reason: str) -> None:
        """Count a refused connection or request."""
        self.refused[reason] += 1
        self.refusals.labels(self.edge, reason).inc()

    def render(self) -> bytes:
        """Return the text of /metrics; metrics of queues are those of the last `publish_queues`."""
        return generate_latest(self.registry)

    def publish_store_calls(self) -> None:
        """Update the histogram of calls to the store."""
        self.store_calls.publish(self._store_seconds)

    def publish_queues(self) -> None:
        """Update the metrics of queues."""
        if self.queues is not None:
            self.queues.publish()

    def _request_counter(self, operation: str, result: str) -> Counter:
        """Return the child to keep, as `requests`: `metrics.requests("enq", "ok").inc(len(run))`."""
        return self._requests.labels(self.edge, operation, result)

    def _request_seconds(self, operation: str) -> Histogram:
        """Return the child to keep, as `seconds`: `metrics.seconds("enq").observe(0.003)`."""
        return self._seconds.labels(self.edge, operation)


_SHARED = "PROMETHEUS_MULTIPROC_DIR"


def share(folder: Path) -> None:
    """Keep the metrics of this process and its forked children in files in `folder`, from now on.

    prometheus_client reads the setting when it is imported, so it is applied again here.
    """
    os.environ[_SHARED] = str(folder)
    values.ValueClass = values.get_value_class()  # type: ignore[no-untyped-call]
