"""The Python generator's state of a run, and of each connection that sends requests."""

from __future__ import annotations

import select
import socket
import time
from collections import deque
from dataclasses import dataclass, field

from benchmarks.fallback.listen import Listener, encode_stamp
from benchmarks.replies import REQUEST_ONCE, RULES, UNANSWERED, BrokenReply

READ_BYTES = 1 << 18


@dataclass(slots=True)
class Run:
    """The options, and the totals over all connections."""

    rule: str
    window: int
    per_request: int
    count: int
    rate: float
    parts: int = 1
    fan: int = 0
    ahead: int = 0
    stamped: bool = False
    listeners: list[Listener] = field(default_factory=list)
    slowest: int = 0  # messages that the slowest listener has received, as of the last turn
    asked: int = 0
    done: int = 0
    refused: int = 0
    empty: int = 0
    started: float = 0.0
    now: float = 0.0
    stopping: bool = False
    waits: list[tuple[float, int]] = field(default_factory=list)  # seconds, messages

    @property
    def is_complete(self) -> bool:
        return self.done + self.refused >= self.count and self.is_heard

    @property
    def heard(self) -> int:
        return sum(each.heard for each in self.listeners)

    @property
    def is_heard(self) -> bool:
        """Return True if all listeners have received all messages published so far."""
        return self.heard >= self.done * self.fan

    @property
    def is_heard_once(self) -> bool:
        """Return True if each message was received exactly once; if all listeners get all messages, by each of them."""
        each_right = self.fan != len(self.listeners) or all(
            each.heard == self.done for each in self.listeners
        )
        return each_right and self.heard == self.done * self.fan

    @property
    def may_go_on(self) -> bool:
        """Return True if the publishers are less than the permitted distance ahead of the slowest listener."""
        return not self.ahead or self.asked + self.per_request <= self.slowest + self.ahead

    def due(self) -> float:
        """Return the time when the next message is due: now, or in paced mode its scheduled time."""
        return self.started + self.asked / self.per_request / self.rate if self.rate else self.now


@dataclass(slots=True)
class Conn:
    """A connection that sends requests; also the `Conversation` of its rule."""

    run: Run
    sock: socket.socket
    request: bytes
    ok: bytes
    ok_status: int
    half_pattern: int
    part: int = 0
    phase: int = 0
    tag: int = 0
    delivering: int = 0
    confirmed: set[int] = field(default_factory=set)
    unread: bytes = b""
    unsent: bytearray = field(default_factory=bytearray)
    in_flight: int = 0
    # [time of the request, messages of it in flight]
    groups: deque[list[float]] = field(default_factory=deque)

    def done(self, messages: int) -> None:
        self.run.done += messages
        for stamp, n in self._answered(messages):
            if not self.run.stamped:
                self.run.waits.append((self.run.now - stamp, n))

    def refused(self, messages: int) -> None:
        self.run.refused += messages
        self._answered(messages)

    def empty(self) -> None:
        self._answered(1)
        self.run.empty += 1
        self.run.asked -= 1

    def emit(self, data: bytes) -> None:
        self.unsent += data

    def _answered(self, messages: int) -> list[tuple[float, int]]:
        """Remove the oldest messages from those in flight."""
        taken = []
        while messages and self.groups:
            group = self.groups[0]
            n = min(messages, int(group[1]))
            group[1] -= n
            messages -= n
            self.in_flight -= n
            taken.append((group[0], n))
            if not group[1]:
                self.groups.popleft()
        return taken

    def _may_ask(self) -> bool:
        run = self.run
        if run.stopping or self.in_flight + run.per_request > run.window or not run.may_go_on:
            return False
        return run.asked < run.count or run.rule in REQUEST_ONCE

    def refill(self) -> None:
        run = self.run
        while self._may_ask() and (at := run.due()) <= run.now:
            self.unsent += self._next_part(at)
            if run.rule in REQUEST_ONCE:
                self.request = b""
            self.groups.append([at, run.per_request])
            self.in_flight += run.per_request
            run.asked += run.per_request
            if run.rule in UNANSWERED:
                self.done(run.per_request)

    def _next_part(self, at: float) -> bytes:
        size = len(self.request) // self.run.parts
        part = self.request[self.part * size : (self.part + 1) * size]
        self.part = (self.part + 1) % self.run.parts
        return encode_stamp(part, at) if self.run.stamped else part

    def receive(self) -> None:
        try:
            data = self.sock.recv(READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            raise BrokenReply("the peer closed the connection")
        self.run.now = time.monotonic()
        self.unread += data
        self.unread = self.unread[RULES[self.run.rule](self, self.unread) :]

    def flush(self, poll: select.epoll) -> None:
        try:
            while self.unsent:
                del self.unsent[: self.sock.send(self.unsent)]
        except BlockingIOError:
            pass
        poll.modify(self.sock, select.EPOLLIN | (select.EPOLLOUT if self.unsent else 0))
