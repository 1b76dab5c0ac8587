"""What this process does with each queue, as metrics: only where `metrics.queues` is on (docs/metrics.md).

The store counts it anyway, for its samples; here it is asked for when somebody scrapes, or now and then where that is
another process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from prometheus_client.registry import Collector

from services.kit.metrics.queue_names import QueueNames
from services.kit.metrics.queue_totals import Done, Family, Figures, Journal, families

log = logging.getLogger(__name__)


class QueueMeter(Collector):
    def __init__(
        self, edge: str, names: QueueNames, *, latencies: bool, journal: Journal | None = None
    ) -> None:
        """journal: where another process reads what is told of queues."""
        self._edge = edge
        self._names = names
        self._latencies = latencies
        self._journal = journal
        self._figures: dict[str, Figures] = {}  # by label
        self._changed: set[str] = set()
        self._asks: list[Callable[[], None]] = []

    def meter(self, ask: Callable[[], None]) -> Callable[[str, Done], None]:
        """What a store wants to know of those who meter it."""
        self._asks.append(ask)
        return self.hear

    def publish(self) -> None:
        """The metrics are up to date by then, and names that are others' by now are gone from them.

        What another process cannot be told now it is told the next time.
        """
        for ask in self._asks:
            ask()
        try:
            self._tell()
        except OSError as error:  # no descriptor, no room
            fields = {"action": "queues_untold", "queues": len(self._changed)}
            log.warning("cannot tell what is done with queues: %s", error, extra=fields)

    def _tell(self) -> None:
        """Raises OSError."""
        self._names.keep_up()
        gone = [label for label in self._figures if not self._names.has(label)]
        for label in gone:
            del self._figures[label]
            self._changed.discard(label)
        if self._journal is not None:
            self._journal.tell(self._figures, self._changed, anew=bool(gone))
        self._changed.clear()

    def hear(self, name: str, done: Done) -> None:
        label = self._names.label(name)
        self._figures.setdefault(label, Figures()).add(done, latencies=self._latencies)
        self._changed.add(label)

    def collect(self) -> Iterator[Family]:
        return families(self._edge, self._figures.copy())
