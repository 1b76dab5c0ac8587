"""Measure the store alone, without an edge: calls on one connection, four in flight.

The workload is the same for every store side, which only encodes the calls (see `StoreSide`).
"""

from __future__ import annotations

import collections
import enum
import socket
import time
from typing import Protocol

import hiredis

from benchmarks.peers.peer import dial

CALLS_IN_FLIGHT = 4
READ_BYTES = 1 << 18


class Mode(enum.Enum):
    PUBLISH = "publish"
    TAKE_SETTLE = "take + settle"  # of a queue filled before
    ALL_THREE = "all three"  # publish, take and settle at once


class StoreSide(Protocol):
    """The encoding of a store's calls: RESP commands, with one reply for each command.

    A side is constructed on an empty server, where it loads its functions and declares its queue.
    """

    def publish(self, messages: int) -> bytes:
        """Return one call that publishes `messages` messages of 100 bytes."""

    def step(self, taken: object, publish: int, want: int) -> tuple[list[tuple[str, bytes]], int]:
        """Return calls that settle the messages of the take reply `taken` (None: none yet), publish, and take again.

        The calls are in order, with ("take", request) once among them; also return the number of settled messages.
        """


class _Calls:
    """A connection with its calls in order, and their replies."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._reader = hiredis.Reader()
        self._kinds: collections.deque[str] = collections.deque()

    def __len__(self) -> int:
        return len(self._kinds)

    def send(self, calls: list[tuple[str, bytes]]) -> None:
        self._kinds.extend(kind for kind, _ in calls)
        self._sock.sendall(b"".join(request for _, request in calls))

    def receive(self) -> tuple[str, object]:
        """Return the next reply and the kind of its call. Raises OSError if the store refused it."""
        while (reply := self._reader.gets()) is False:
            data = self._sock.recv(READ_BYTES)
            if not data:
                raise ConnectionError("the store closed the connection")
            self._reader.feed(data)
        if isinstance(reply, Exception):
            raise OSError(f"the store refused a call: {reply}")
        return self._kinds.popleft(), reply


def drive(port: int, side: StoreSide, mode: Mode, batch: int, messages: int) -> float:
    """Return the seconds for `messages` messages in calls of `batch`."""
    with dial(port) as sock:
        calls = _Calls(sock)
        if mode is Mode.PUBLISH:
            return _publish(calls, side, batch, messages)
        if mode is Mode.TAKE_SETTLE:
            _publish(calls, side, batch, messages)
            return _take_and_settle(calls, side, batch, messages, to_publish=0)
        return _take_and_settle(calls, side, batch, messages, to_publish=messages)


def _publish(calls: _Calls, side: StoreSide, batch: int, messages: int) -> float:
    start = time.perf_counter()
    sent = 0
    while sent < messages or calls:
        if sent < messages and len(calls) < CALLS_IN_FLIGHT:
            calls.send([("publish", side.publish(batch))])
            sent += batch
        else:
            calls.receive()
    return time.perf_counter() - start


def _take_and_settle(calls: _Calls, side: StoreSide, batch: int, messages: int, to_publish: int) -> float:
    """Settle each reply to a take; send the next take, and a publish while any are left, with the settle."""
    start = time.perf_counter()
    settled = 0
    replies: list[object] = [None] * CALLS_IN_FLIGHT
    while settled < messages:
        taken = replies.pop() if replies else _next_take(calls)
        requests, count = side.step(taken, min(batch, to_publish), batch)
        to_publish -= min(batch, to_publish)
        settled += count
        calls.send(requests)
    while calls:
        calls.receive()
    return time.perf_counter() - start


def _next_take(calls: _Calls) -> object:
    kind, reply = calls.receive()
    while kind != "take":
        kind, reply = calls.receive()
    return reply
