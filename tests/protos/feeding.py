"""Helpers of the tests of all protocols: octets cut as TCP may cut them, their events, and checks of the end."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Protocol, TypeVar

from hypothesis import strategies as st

from protos.types import PeerError

EventT = TypeVar("EventT", covariant=True)


class Source(Protocol[EventT]):
    """The common interface of the connections of all protocols."""

    @property
    def buffered(self) -> int: ...

    def receive(self, data: bytes, now: float) -> Iterator[EventT]: ...

    def receive_eof(self, now: float) -> Iterator[EventT]: ...

    def deadline(self) -> float | None: ...

    def on_time(self, now: float) -> Iterator[EventT]: ...

    def restart_clock(self, now: float) -> None: ...


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    """Return `data` cut at `places`."""
    edges = [0, *sorted(places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


def one_by_one(data: bytes) -> list[bytes]:
    """Return the bytes of `data` one by one."""
    return cut(data, range(1, len(data)))


def cuts(data: bytes) -> st.SearchStrategy[list[bytes]]:
    """Return a strategy that cuts `data` into bytes, or at up to 12 places, some of which may be equal."""
    places = st.lists(st.integers(0, len(data)), max_size=12)
    return st.just(one_by_one(data)) | places.map(lambda chosen: cut(data, chosen))


def feed(source: Source[EventT], chunks: Iterable[bytes]) -> tuple[list[EventT], str | None]:
    """Feed chunks and the peer's FIN; return all events, and the reason of the PeerError at their end."""
    events: list[EventT] = []
    reason = None
    try:
        for chunk in chunks:
            for event in source.receive(chunk, 0.0):
                events.append(event)  # one by one: those before an error count
        events.extend(source.receive_eof(0.0))
    except PeerError as error:
        reason = error.reason
    assert (source.buffered, source.deadline()) == (0, None)
    return events, reason


def assert_over(source: Source[object], late: Iterable[bytes]) -> None:
    """Check that further input is ignored: `late`, time and FIN."""
    for wire in late:
        assert list(source.receive(wire, 1.0)) == []
        assert (source.buffered, source.deadline()) == (0, None)
    source.restart_clock(2.0)
    assert list(source.on_time(1_000.0)) == []
    assert list(source.receive_eof(1_000.0)) == []
