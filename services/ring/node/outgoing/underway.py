"""What left while it was being put into the queue, as long as the queue has not shown it (ring.md 4.5).

What the queue shows is recognised by what it says, wherever it stands: messages that say the same stand for each other,
so each is sent as often as it is in the queue, whatever else is put in between, or before.
"""

from __future__ import annotations

from collections import deque

from services.ring.node.outgoing.parcels import ORPHAN, Stored


class Underway:
    """Parcels in the order in which they left, which is that of the queue if nothing breaks."""

    def __init__(self) -> None:
        self._parcels: deque[Stored] = deque()

    def __len__(self) -> int:
        return len(self._parcels)

    def leave(self, parcels: list[Stored]) -> None:
        self._parcels.extend(parcels)

    def shown(self, payload: bytes, is_begun: bool) -> Stored | None:
        """The oldest parcel that this message of the queue may be, mostly the first. None: it has not left.

        Who put it on the ring must be right, too: that is asked when it comes back (5.5).
        """
        for index, parcel in enumerate(self._parcels):
            if parcel.stored == payload and parcel.is_begun == is_begun:
                del self._parcels[index]
                return parcel
        return None

    def safe(self) -> set[Stored]:
        """Those that are known to be stored. If the queue shows nothing more now, somebody else has taken them."""
        return {parcel for parcel in self._parcels if parcel.is_safe}

    def are_gone(self, parcels: set[Stored]) -> None:
        """They are not in the queue, but for those of them that it has shown meanwhile."""
        for parcel in parcels.intersection(self._parcels):
            parcel.life = ORPHAN
        self._parcels = deque(parcel for parcel in self._parcels if parcel.life != ORPHAN)

    def orphan(self) -> None:
        """Nobody knows which of them are in the queue: what it shows is sent, whether it has left or not."""
        for parcel in self._parcels:
            parcel.life = ORPHAN
        self.clear()

    def clear(self) -> None:
        self._parcels.clear()
