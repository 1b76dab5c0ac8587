"""Messages that left while being stored, until the queue shows them (ring.md 4.5).

They are recognised by content at any place in the queue: equal messages count as each other, so each is sent as often
as it is in the queue, even if other messages are stored in between.
"""

from __future__ import annotations

from collections import deque

from services.ring.node.outgoing.stored_message import ORPHAN, StoredMessage


class InFlight:
    """Messages in the order in which they left, which is that of the queue if nothing fails."""

    def __init__(self) -> None:
        self._parcels: deque[StoredMessage] = deque()

    def __len__(self) -> int:
        return len(self._parcels)

    def leave(self, messages: list[StoredMessage]) -> None:
        """Add messages that leave now."""
        self._parcels.extend(messages)

    def shown(self, payload: bytes, is_begun: bool) -> StoredMessage | None:
        """Return the oldest message that this entry of the queue may be; None if it has not left.

        The begin flag must match, too: it decides what happens when the message comes back (5.5).
        """
        for index, message in enumerate(self._parcels):
            if message.stored == payload and message.is_begun == is_begun:
                del self._parcels[index]
                return message
        return None

    def safe(self) -> set[StoredMessage]:
        """Return the messages known to be stored: if the queue shows no more now, another process has taken them."""
        return {message for message in self._parcels if message.is_safe}

    def are_gone(self, messages: set[StoredMessage]) -> None:
        """Drop these messages, which are not in the queue, except those that it has shown meanwhile."""
        for message in messages.intersection(self._parcels):
            message.generation = ORPHAN
        self._parcels = deque(message for message in self._parcels if message.generation != ORPHAN)

    def orphan(self) -> None:
        """Drop all messages, as it is unknown which are in the queue: what it shows is sent (again)."""
        for message in self._parcels:
            message.generation = ORPHAN
        self.clear()

    def clear(self) -> None:
        """Drop all messages; those already sent may still be answered."""
        self._parcels.clear()
