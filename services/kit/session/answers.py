"""Replies leave in the order of their requests, whenever they become known."""

from __future__ import annotations


class Slot:
    """The place of a reply, or of a run's replies; `reply` is None until it is known."""

    __slots__ = ("asked", "reply")

    def __init__(self, asked: float) -> None:
        self.asked = asked  # the loop's time, s
        self.reply: bytes | None = None


class Answers(list[Slot]):
    """What a connection owes, oldest first. A list: few at a time, and an empty deque holds 0.5 KiB for ever."""

    __slots__ = ()

    def expect(self, now: float) -> Slot:
        slot = Slot(now)
        self.append(slot)
        return slot

    def take_known(self) -> bytes:
        """All that may be sent now."""
        if len(self) == 1:
            return b"" if self[0].reply is None else self.pop().reply or b""
        known = []
        for slot in self:
            if slot.reply is None:
                break
            known.append(slot.reply)
        del self[: len(known)]
        return b"".join(known)

    def end_with(self, slot: Slot) -> None:
        """Nothing is owed behind it any more: what becomes known of that is never sent."""
        if slot in self:  # else it stood behind another end itself
            del self[self.index(slot) + 1 :]
