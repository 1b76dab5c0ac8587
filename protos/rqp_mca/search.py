"""Who has the queue: the receivers that were asked, and those that said yes (rqp_mca.md 3)."""

from collections.abc import Iterable

from protos.rqp_mca.actions import Peer


class Search:
    """There is a connection to each of them, and to nobody else while no receiver is known."""

    __slots__ = ("asked", "candidates")

    def __init__(self) -> None:
        self.asked: dict[Peer, None] = {}  # they have not answered
        self.candidates: list[Peer] = []  # they have, in this order

    def __contains__(self, peer: Peer) -> bool:
        return peer in self.asked or peer in self.candidates

    def is_answered(self) -> bool:
        """Nobody else can answer, and somebody has."""
        return bool(self.candidates) and not self.asked

    def ask(self, peers: Iterable[Peer]) -> None:
        self.asked.update(dict.fromkeys(peers))

    def answer(self, peer: Peer) -> None:
        del self.asked[peer]
        self.candidates.append(peer)

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
