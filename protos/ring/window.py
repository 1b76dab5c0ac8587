"""Messages sent to the successor and not answered yet (ring.md 2.2, 4.5)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

from protos.types import LocalError, PeerError

Item = TypeVar("Item")


class Window(Generic[Item]):
    """Messages under way on one outbound link, in order; a new link begins with a new window.

    The link is late once nothing has been acknowledged for `ack_s` seconds while something could have been: counted
    from when the oldest message was sent, or from the last acknowledgement if that came later. The successor answers in
    order, so a message's time begins when it is the next to be answered. Counted from each message's own sending, a
    successor that makes steady progress through a window of 64 would be taken for broken; counted from the latest
    sending, a dead one would be found late.
    """

    __slots__ = ("_ack_s", "_since", "_size", "_under_way")

    def __init__(self, size: int, ack_s: float) -> None:
        self._size = size
        self._ack_s = ack_s
        self._under_way: deque[Item] = deque()
        self._since = 0.0  # when the oldest became the next to be answered

    @property
    def room(self) -> int:
        """How many messages may be sent now."""
        return self._size - len(self._under_way)

    def sent(self, item: Item, now: float) -> None:
        """Add a message, USER or LOOP, that was sent. Raises LocalError if there was no room."""
        if not self.room:
            raise LocalError(f"{self._size} messages are unanswered already")
        if not self._under_way:
            self._since = now
        self._under_way.append(item)

    def acknowledged(self, count: int, now: float) -> Iterator[Item]:
        """Yield the answered messages in order; raise PeerError `ack_for_nothing` if `count` exceeds them."""
        for _ in range(count):
            if not self._under_way:
                raise PeerError("ack_for_nothing")  # 2.5: the answers before it count
            self._since = now
            yield self._under_way.popleft()

    def deadline(self) -> float | None:
        """Return when the link is late; None if nothing is unanswered."""
        return self._since + self._ack_s if self._under_way else None

    def is_late(self, now: float) -> bool:
        """Return whether an acknowledgement is overdue: the link is broken (4.5)."""
        due = self.deadline()
        return due is not None and now >= due

    def unacknowledged(self) -> list[Item]:
        """Return what to send again on the next link, in order (2.2)."""
        return list(self._under_way)
