"""Text pub/sub edges that a measure has to itself, with stores of their own: nothing else is in memory or at work."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from benchmarks.measures.bench import Bench
from benchmarks.peers.redis import Store
from benchmarks.peers.text import Text


@contextlib.contextmanager
def own_store(bench: Bench, name: str) -> Iterator[Store]:
    """The same server as the run's, empty; stopped afterwards."""
    store = Store(bench.workshop, bench.store.program, f"{name}-store")
    store.start()
    try:
        yield store
    finally:
        store.stop()


@contextlib.contextmanager
def text_edge(bench: Bench, store: Store, name: str, neighbours: Sequence[int] = ()) -> Iterator[Text]:
    """A running edge. neighbours: ports where other stores' edges await links. Raises NotRun."""
    edge = Text(bench.workshop, store, name, neighbours)
    edge.start()
    try:
        yield edge
    finally:
        edge.stop()
