"""Why nothing gets through, in words for people: of conditions and dead letters (rqp_mca.md 3.1)."""

from __future__ import annotations

from collections.abc import Container

from protos.rqp_mca import Failure, Peer
from protos.types import PeerError

NAMED = 3  # peers in one text
WHY = {
    Failure.NO_RECEIVER: "no peer has queue {}",
    Failure.NOT_RESERVED: "no peer that has queue {} reserves it",
    Failure.DATA_TIMEOUT: "the peer that reserved queue {} does not confirm",
    Failure.CONNECTION_LOST: "the peer that reserved queue {} closes the connection instead of confirming",
    Failure.PROTOCOL_ERROR: "the peer that reserved queue {} breaks the protocol instead of confirming",
    Failure.UNEXPECTED_CONFIRM: "the peer that reserved queue {} says something else than the confirm",
}


class Troubles:
    """Of one transmission queue. Peers that broke the protocol are told of until they are asked anew."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._broken: dict[Peer, str] = {}

    def broke(self, peer: Peer, error: PeerError) -> None:
        self._broken[peer] = str(error)

    def asked(self, peer: Peer) -> None:
        self._broken.pop(peer, None)

    def say(self, failure: Failure, peers: Container[Peer]) -> str:
        """peers: all that may be asked."""
        broken = [f"{peer}: {what}" for peer, what in self._broken.items() if peer in peers]
        more = [f"and {len(broken) - NAMED} more"] if len(broken) > NAMED else []
        return "; ".join((WHY[failure].format(self._number), *broken[:NAMED], *more))
