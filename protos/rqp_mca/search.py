"""The search for a queue: receivers that were asked, and those that have it (rqp_mca.md 3)."""

from bisect import insort
from collections.abc import Iterable

from protos.rqp_mca.actions import Peer


class Search:
    """Receivers with a connection; while no receiver is known there are no other connections."""

    __slots__ = ("_failed", "_failures", "asked", "candidates")

    def __init__(self) -> None:
        self.asked: dict[Peer, None] = {}  # without an answer
        self.candidates: list[Peer] = []  # those that have the queue, in the order to ask for it (3.5)
        self._failed: dict[Peer, int] = {}  # number of the last failure since the last delivery
        self._failures = 0

    def __contains__(self, peer: Peer) -> bool:
        return peer in self.asked or peer in self.candidates

    def is_answered(self) -> bool:
        """Return whether all have answered, and at least one has the queue."""
        return bool(self.candidates) and not self.asked

    def ask(self, peers: Iterable[Peer]) -> None:
        """Note receivers that are asked."""
        self.asked.update(dict.fromkeys(peers))

    def answer(self, peer: Peer) -> None:
        """Make a receiver that has the queue a candidate."""
        del self.asked[peer]
        insort(self.candidates, peer, key=self._rank)

    def remove(self, peer: Peer) -> None:
        """Forget a receiver that is gone."""
        self.asked.pop(peer, None)
        self.candidates = [other for other in self.candidates if other != peer]

    def end_asking(self) -> list[Peer]:
        """Return the receivers without an answer; they do not count any more."""
        late, self.asked = list(self.asked), {}
        return late

    def end(self) -> list[Peer]:
        """Return all receivers; they do not count any more."""
        all_peers = [*self.end_asking(), *self.candidates]
        self.candidates = []
        return all_peers

    def has_failed(self, peer: Peer) -> None:
        """Note that a receiver had the queue, but then did not reserve it or not take the data."""
        self._failures += 1
        self._failed[peer] = self._failures

    def forgive(self, peer: Peer) -> None:
        """Forget the failures of a receiver: a message was delivered to it, or it is gone."""
        self._failed.pop(peer, None)

    def _rank(self, peer: Peer) -> int:
        """Rank receivers without failures first, the last one that failed last."""
        return self._failed.get(peer, 0)
