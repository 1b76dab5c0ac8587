"""Replies leave in the order of their requests (tmq.md 1.2), whenever they become known."""

from __future__ import annotations

from collections import deque


class Slot:
    """The place of one reply, or of a run's replies."""

    __slots__ = ("reply",)

    def __init__(self) -> None:
        self.reply: bytes | None = None


class Answers:
    """What a connection owes, oldest first."""

    __slots__ = ("_slots",)

    def __init__(self) -> None:
        self._slots: deque[Slot] = deque()

    def __len__(self) -> int:
        return len(self._slots)

    def expect(self) -> Slot:
        slot = Slot()
        self._slots.append(slot)
        return slot

    def take_known(self) -> bytes:
        """All that may be sent now."""
        slots = self._slots
        if len(slots) == 1 and slots[0].reply is not None:
            return slots.popleft().reply or b""
        known = []
        while slots and slots[0].reply is not None:
            known.append(slots.popleft().reply or b"")
        return b"".join(known)
