"""Model a queue in plain Python; the store must behave the same in all cases."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Message:
    """A message; `place` is its position in the queue's order, which changes only by a return to the end."""

    body: bytes
    place: int
    acquired: int = 0
    failed: int = 0
    note: str = ""


@dataclass
class ModelQueue:
    """A queue; each message is in exactly one of ready, leased (by session), dead and done."""

    max_deliveries: int = 0
    max_length: int = 0
    ready: list[Message] = field(default_factory=list)  # by place
    leased: dict[bytes, tuple[str, Message]] = field(default_factory=dict)
    dead: list[bytes] = field(default_factory=list)
    done: list[bytes] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    last_place: int = 0

    def __len__(self) -> int:
        return len(self.ready) + len(self.leased)

    def bytes(self) -> int:
        return self.ready_bytes() + sum(map(len, self.leased))

    def _append(self, message: Message) -> None:
        self.last_place += 1
        message.place = self.last_place
        self.ready.append(message)

    def room(self) -> int | None:
        return max(0, self.max_length - len(self)) if self.max_length else None

    def publish(self, bodies: list[bytes]) -> int:
        """Put messages; return how many are accepted, which are the first ones."""
        fit = len(bodies) if (room := self.room()) is None else min(len(bodies), room)
        for body in bodies[:fit]:
            self._append(Message(body, 0))
        self.counts["added"] += fit
        return fit

    def take(self, session: str, want: int) -> list[Message]:
        taken, self.ready = self.ready[:want], self.ready[want:]
        for message in taken:
            message.acquired += 1
            self.leased[message.body] = (session, message)
        self.counts["delivered"] += len(taken)
        return taken

    def settle(self, bodies: Iterable[bytes]) -> None:
        for body in bodies:
            del self.leased[body]
            self.done.append(body)
            self.counts["acked"] += 1

    def give_back(self, body: bytes, *, failed: bool, to_end: bool) -> None:
        _, message = self.leased.pop(body)
        message.failed += failed
        if failed and self.max_deliveries and message.failed >= self.max_deliveries:
            self._die(body)
            return
        self.counts["returned"] += 1
        if to_end:
            self._append(message)
        else:
            bisect.insort(self.ready, message, key=lambda m: m.place)

    def write(self, body: bytes, note: str) -> None:
        """Set the note of a leased message."""
        self.leased[body][1].note = note

    def reject(self, body: bytes) -> None:
        del self.leased[body]
        self._die(body)

    def _die(self, body: bytes) -> None:
        self.dead.append(body)
        self.counts["dead"] += 1

    def ready_bytes(self) -> int:
        return sum(len(m.body) for m in self.ready)

    def remove_ready(self) -> int:
        """Remove ready messages; return how many."""
        gone = len(self.ready)
        self.ready.clear()
        self.counts["emptied"] += gone
        return gone

    def redrive(self) -> int:
        """Move dead letters to the end as new messages; return how many."""
        moved = self.publish(self.dead)
        del self.dead[:moved]
        return moved
