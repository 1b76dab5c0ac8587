"""Send replies in the order of their requests."""

from __future__ import annotations


class Slot:
    """The place of one reply, or of a run's replies; `reply` is None until it is known."""

    __slots__ = ("asked", "reply")

    def __init__(self, asked: float) -> None:
        self.asked = asked  # loop time
        self.reply: bytes | None = None


class Answers(list[Slot]):
    """The pending replies, oldest first. A list, because an empty deque takes 0.5 KiB."""

    __slots__ = ()

    def expect(self, now: float) -> Slot:
        """Append and return the slot of a reply that is not known yet."""
        slot = Slot(now)
        self.append(slot)
        return slot

    def take_known(self) -> bytes:
        """Remove and return the replies before the first unknown one."""
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
        """Drop all replies after this one."""
        if slot in self:  # else it was dropped itself
            del self[self.index(slot) + 1 :]
