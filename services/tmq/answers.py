"""Replies leave in the order of their requests (tmq.md 1.2), whenever they become known."""

from __future__ import annotations

from collections import deque


class Slot:
    """The place of a reply, or of a run's replies; `reply` is None until it is known."""

    __slots__ = ("asked", "reply")

    def __init__(self, asked: float) -> None:
        self.asked = asked  # the loop's time, s
        self.reply: bytes | None = None


class Answers(deque[Slot]):
    """What a connection owes, oldest first."""

    __slots__ = ()

    def expect(self, now: float) -> Slot:
        slot = Slot(now)
        self.append(slot)
        return slot

    def take_known(self) -> bytes:
        """All that may be sent now."""
        if len(self) == 1:
            return b"" if self[0].reply is None else self.popleft().reply or b""
        known = []
        while self and (reply := self[0].reply) is not None:
            known.append(reply)
            self.popleft()
        return b"".join(known)
