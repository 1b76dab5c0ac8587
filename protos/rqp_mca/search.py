"""Who has the queue: the receivers that were asked, and those that said yes (rqp_mca.md 3)."""

from bisect import insort
from collections.abc import Iterable

from protos.rqp_mca.actions import Peer


class Search:
    """There is a connection to each of them, and to nobody else while no receiver is known."""

    __slots__ = ("_failed", "_failures", "asked", "candidates")

    def __init__(self) -> None:
        self.asked: dict[Peer, None] = {}  # they have not answered
        self.candidates: list[
            Peer
        ] = []  # they have; in the order in which they are to be asked to reserve it (3.5)
        self._failed: dict[
            Peer, int
        ] = {}  # the number of its last failure, since something got through to it
        self._failures = 0

    def __contains__(self, peer: Peer) -> bool:
        return peer in self.asked or peer in self.candidates

    def is_answered(self) -> bool:
        """Nobody else can answer, and somebody has."""
        return bool(self.candidates) and not self.asked

    def ask(self, peers: Iterable[Peer]) -> None:
        self.asked.update(dict.fromkeys(peers))

    def answer(self, peer: Peer) -> None:
        del self.asked[peer]
        insort(self.candidates, peer, key=self._rank)

    def remove(self, peer: Peer) -> None:
        self.asked.pop(peer, None)
        self.candidates = [other for other in self.candidates if other != peer]

    def end_asking(self) -> list[Peer]:
        """Those who have not answered; they do not count any more."""
        late, self.asked = list(self.asked), {}
        return late

    def end(self) -> list[Peer]:
        """All of them; they do not count any more."""
        everybody = [*self.end_asking(), *self.candidates]
        self.candidates = []
        return everybody

    # who fails, whatever is being searched (3.5)

    def has_failed(self, peer: Peer) -> None:
        """It said yes, and then did not reserve the queue, or not take what was sent."""
        self._failures += 1
        self._failed[peer] = self._failures

    def forgive(self, peer: Peer) -> None:
        """Something has got through to it, or it is not there any more."""
        self._failed.pop(peer, None)

    def _rank(self, peer: Peer) -> int:
        """Who has not failed is first, who failed last is last."""
        return self._failed.get(peer, 0)
