"""Replies leave in the order of their requests (tmq.md 1.2), whenever they become known."""

from __future__ import annotations

from collections import deque

Slot = list[bytes | None]  # one element: the place of a reply, or of a run's replies; None until it is known


class Answers(deque[Slot]):
    """What a connection owes, oldest first."""

    __slots__ = ()

    def expect(self) -> Slot:
        slot: Slot = [None]
        self.append(slot)
        return slot

    def take_known(self) -> bytes:
        """All that may be sent now."""
        if len(self) == 1:
            return b"" if self[0][0] is None else self.popleft()[0] or b""
        known = []
        while self and self[0][0] is not None:
            known.append(self.popleft()[0] or b"")
        return b"".join(known)
