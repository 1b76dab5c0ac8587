"""Text pub/sub edges for one measure, with stores of their own, which have no other data or load."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from benchmarks.measures.bench import Bench
from benchmarks.peers.redis import Store
from benchmarks.peers.text import Text


@contextlib.contextmanager
def own_store(bench: Bench, name: str) -> Iterator[Store]:
    """Run another store with the same server program, empty; stop it afterwards."""
    store = Store(bench.workshop, bench.store.program, f"{name}-store")
    store.start()
    try:
        yield store
    finally:
        store.stop()


@contextlib.contextmanager
def text_edge(bench: Bench, store: Store, name: str, neighbours: Sequence[int] = ()) -> Iterator[Text]:
    """Run an edge. neighbours: ports where other stores' edges accept links. Raises NotRun."""
    edge = Text(bench.workshop, store, name, neighbours)
    edge.start()
    try:
        yield edge
    finally:
        edge.stop()
