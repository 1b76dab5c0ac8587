"""A session under random events: its connection and its store do all that they may do, in random order."""

from __future__ import annotations

import random
import struct
from collections import deque
from collections.abc import Callable
from typing import Any

from services.kit.session.session import Peer, Session
from services.store import Client, Delivery, Queue
from services.store.model import errors

SESSION, OUTPUT = 1, 2  # reasons for a pause in reading


class ChancePipe:
    """A store that answers later, in order, and sometimes with errors."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.waiting = self.messages = self.idempotent = self
        self.congested = False
        self.trouble: errors.StoreError | None = None
        self.asked: deque[Callable[[], None]] = deque()
        self.resumes: list[Callable[[], None]] = []

    def when_clear(self, resume: Callable[[], None]) -> None:
        self.resumes.append(resume)

    def clear(self) -> None:
        self.congested = False
        resumes, self.resumes = self.resumes, []
        for resume in resumes:
            resume()

    def _later(self, done: Callable[..., None] | None, good: Any, *more: Any) -> None:
        answer = errors.QueueFull() if self.rng.random() < 0.1 else good
        self.asked.append((lambda: done(answer, *more)) if done is not None else lambda: None)

    def publish(self, source: Any, queue: Queue, run: list[bytes], origin: str, done: Any) -> None:
        self._later(done, [])

    def take(self, source: Any, queue: Queue, want: int, done: Any, *, leased: bool = False) -> None:
        count = self.rng.randrange(want + 1)
        blob = b"".join(struct.pack(">I", 3) + b"abc" for _ in range(count))
        got = [Delivery(queue, b"1", b"1-1", count, 0, count, blob, b"1 x", b"")] if count else []
        self._later(done, got, self.rng.random() < 0.3)

    def count(self, source: Any, queue: Queue, done: Any) -> None:
        self._later(done, 5)

    def settle(self, source: Any, deliveries: list[Delivery], done: Any = None) -> None:
        self.asked.append((lambda: done(None)) if done is not None else lambda: None)

    def release(self, source: Any, deliveries: list[Delivery], *, done: Any = None, **_: Any) -> None:
        self.settle(source, deliveries, done)

    def give_back(self, deliveries: list[Delivery]) -> None:
        pass

    def commit(self, source: Any, identifier: str, parts: list[Any], done: Any) -> None:
        self._later(done, None)


class ChanceWorld:
    """A session's connection and its service's pipe. `step` makes a random event happen; `settle_down` ends all."""

    peer, conn, metrics = Peer("127.0.0.1", 1), "1", None

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.now = 100.0
        self.holds = 0
        self.closed = False
        self.drained = False
        self.written = b""
        self.tally = self.background = self.store = self.catalogue = self  # of the service
        self.main = ChancePipe(rng)
        self.rounds: list[Callable[[], None]] = []
        self.aside: list[tuple[Callable[[Any], None], Any]] = []
        self.session: Session

    def client(self, peer: Peer) -> Client:
        return Client("test", peer.address)

    def requests(self) -> bytes:
        """Return the client's next octets."""
        raise NotImplementedError

    # the wire

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.written += data

    def close(self) -> None:
        self.closed = True

    abort = close

    def pause(self) -> None:
        self.holds |= SESSION

    def resume(self) -> None:
        self._release(SESSION)

    def _release(self, why: int) -> None:
        if self.holds & why:
            self.holds &= ~why
            if not self.holds and not self.closed:
                self.session.resumed(self.now)

    def is_blocked(self) -> bool:
        return bool(self.holds & OUTPUT)

    def unsent(self) -> int:
        return 0

    def backlog(self) -> int:
        return 0

    def name_peer(self, name: str) -> None:
        pass

    def is_reset(self) -> bool:
        return False

    def reschedule(self) -> None:
        pass

    def soon(self, callback: Callable[[], None]) -> None:
        self.rounds.append(callback)

    def refuse(self, reason: str, detail: str = "") -> None:
        pass

    def loop_time(self) -> float:
        return self.now

    # the service

    def pipe(self, queue: Queue) -> ChancePipe:
        return self.main

    def count(self, *_: Any) -> None:
        pass

    def give_back(self, deliveries: list[Delivery], **_: Any) -> None:
        pass

    def run(self, work: Any, done: Callable[[Any], None]) -> None:
        self.aside.append((done, work))

    def run_read(self, work: Any, done: Callable[[Any], None]) -> None:
        self.aside.append((done, work))

    # chance

    def step(self) -> None:
        steps = (self.receive, self.receive, self.answer, self.answer, self.answer_aside, self.go_round)
        self.rng.choice((*steps, self.block, self.wait, self.congest, self.drain))()

    def receive(self) -> None:
        if not self.holds and not self.closed:
            self.session.received(self.requests(), self.now)

    def answer(self) -> None:
        if self.main.asked:
            self.main.asked.popleft()()

    def answer_aside(self) -> None:
        if self.aside:
            done, result = self.aside.pop(0)
            done(result)

    def go_round(self) -> None:
        """Run the callbacks that wait for the next turn of the event loop."""
        rounds, self.rounds = self.rounds, []
        for callback in rounds:
            callback()

    def block(self) -> None:
        """Let the client stop reading, or continue."""
        if self.closed:
            return
        if self.holds & OUTPUT:
            self._release(OUTPUT)
        else:
            self.holds |= OUTPUT

    def wait(self) -> None:
        self.now += 0.1
        due = self.session.deadline()
        if due is not None and due <= self.now and not self.holds and not self.closed:
            self.session.on_time(self.now)

    def congest(self) -> None:
        self.main.congested = not self.main.resumes and self.rng.random() < 0.3
        if not self.main.congested:
            self.main.clear()

    def drain(self) -> None:
        if not self.drained and not self.closed and self.rng.random() < 0.05:
            self.drained = True
            self.session.drain()

    def settle_down(self) -> None:
        """Let the client read everything and the store answer everything, without new events."""
        while self.main.asked or self.aside or self.rounds or self.main.resumes or self.holds & OUTPUT:
            self.go_round()
            self.main.clear()
            self._release(OUTPUT)
            self.answer()
            self.answer_aside()
