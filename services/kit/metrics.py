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
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, values
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

CONTENT_TYPE = CONTENT_TYPE_LATEST
SECONDS_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
GaugeMerge = Literal["livesum", "livemin", "livemax"]  # how /metrics joins the workers' values


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
        for bucket, number in zip(histogram._buckets, counts, strict=True):
            if number:
                bucket.inc(number)
        if seconds:
            histogram._sum.inc(seconds)


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
    """What the store is given: it counts refusals and alarms of the store, and asks for the figures.

    With the number 0 a counter is there from then on. It also says what the process is (`about`), and what it can be
    asked (`topics`).
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self.topics: dict[str, Topic] = {}
        self.about: Callable[[], Mapping[str, Any]] = dict

    def __call__(self, reason: str, number: int) -> None:
        self._metrics.store_events.labels(self._metrics.edge, reason).inc(number)

    def figures(self) -> Figures:
        traffics = self._metrics.traffics
        return Figures(
            sum(traffic.open for traffic in traffics),
            sum(traffic.opened for traffic in traffics),
            sum(traffic.received for traffic in traffics),
            sum(traffic.sent for traffic in traffics),
            dict(self._metrics.refused),
        )


class Metrics:
    """The metrics of one process. Every name is `penstock_...`, every metric has the label `edge`."""

    def __init__(self, edge: str) -> None:
        self.edge = edge
        self.registry = CollectorRegistry()
        if _SHARED not in os.environ:  # the collectors of a process do not merge
            prometheus_client.ProcessCollector(registry=self.registry)
            prometheus_client.PlatformCollector(registry=self.registry)
            prometheus_client.GCCollector(registry=self.registry)
        at_listener = ("listener",)
        self.connections = self.gauge("connections", "Connections open now", at_listener)
        self.opened = self.counter(
            "connections_opened", "Connections accepted and let in, or dialled", at_listener
        )
        self.received_bytes = self.counter("received_bytes", "Bytes received from peers", at_listener)
        self.sent_bytes = self.counter("sent_bytes", "Bytes written to peers", at_listener)
        self.refusals = self.counter("refusals", "Connections and requests refused, by reason", ("reason",))
        self._requests = self.counter("requests", "Requests answered", ("operation", "result"))
        self._seconds = self.histogram("request_seconds", "Time from request to answer", ("operation",))
        self.local_errors = self.counter("local_errors", "Faults of our own: see the log").labels(edge)
        self.input_held = self.gauge("input_held_bytes", "Unfinished input held").labels(edge)
        self.output_held = self.gauge("output_held_bytes", "Output held that peers do not read").labels(edge)
        self.store_events = self.counter("store_events", "Refusals and alarms of the store", ("reason",))
        self.ready = self.gauge("ready", "1 if the edge takes requests", merge="livemin").labels(edge)
        self.traffics: list[Traffic] = []  # of all listeners and diallers
        self.refused: collections.Counter[str] = collections.Counter()  # as `refusals`
        # Every refusal and alarm of the store has its counter: to be given to the store as its observer.
        self.count_store_event = StoreObserver(self)
        self.requests = functools.cache(self._request_counter)
        self.seconds = functools.cache(self._request_seconds)

    def counter(self, name: str, text: str, labels: Sequence[str] = ()) -> Counter:
        """`penstock_<name>_total`; the first label is always `edge`."""
        return Counter(f"penstock_{name}", text, ("edge", *labels), registry=self.registry)

    def gauge(self, name: str, text: str, labels: Sequence[str] = (), merge: GaugeMerge = "livesum") -> Gauge:
        """`penstock_<name>`; the first label is always `edge`."""
        all_labels = ("edge", *labels)
        return Gauge(f"penstock_{name}", text, all_labels, registry=self.registry, multiprocess_mode=merge)

    def histogram(
        self, name: str, text: str, labels: Sequence[str] = (), buckets: Sequence[float] = SECONDS_BUCKETS
    ) -> Histogram:
        """`penstock_<name>`; the first label is always `edge`."""
        return Histogram(f"penstock_{name}", text, ("edge", *labels), registry=self.registry, buckets=buckets)

    def count_refusal(self, reason: str) -> None:
        self.refused[reason] += 1
        self.refusals.labels(self.edge, reason).inc()

    def render(self) -> bytes:
        """The text of /metrics."""
        return generate_latest(self.registry)

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


def render_shared(folder: Path) -> bytes:
    """The text of /metrics over all processes that share `folder`."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=str(folder))  # type: ignore[no-untyped-call]
    return generate_latest(registry)


def forget_process(pid: int, folder: Path) -> None:
    """A worker is gone: its gauges no longer count, its counters do."""
    mark_process_dead(pid, str(folder))  # type: ignore[no-untyped-call]
