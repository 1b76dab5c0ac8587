"""Why nothing gets through, in words for people: of conditions and dead letters (rqp_mca.md 3.1)."""

from __future__ import annotations

from collections.abc import Collection

from protos.rqp_mca import Failure, Peer
from protos.types import PeerError
from services.rqp.condition import Condition
from services.rqp.mca.receiver import PROTOCOL
from services.rqp.service import RqpService

NAMED = 3  # peers in one text
FAILURE_TEXTS = {
    Failure.NO_RECEIVER: "no peer has queue {}",
    Failure.NOT_RESERVED: "no peer that has queue {} reserves it",
    Failure.DATA_TIMEOUT: "the peer that reserved queue {} does not confirm",
    Failure.CONNECTION_LOST: "the peer that reserved queue {} closes the connection instead of confirming",
    Failure.PROTOCOL_ERROR: "the peer that reserved queue {} breaks the protocol instead of confirming",
    Failure.UNEXPECTED_CONFIRM: "the peer that reserved queue {} says something else than the confirm",
}


class FailureReports:
    """Of one transmission queue. Peers that broke the protocol are told of until they are asked anew."""

    def __init__(self, service: RqpService, number: int, condition: Condition) -> None:
        self._service = service
        self._number = number
        self._condition = condition
        self._repeated = service.repeated.labels(service.metrics.edge, PROTOCOL)
        self._broken: dict[Peer, str] = {}

    def broke(self, peer: Peer, error: PeerError) -> None:
        self._broken[peer] = str(error)

    def asked(self, peer: Peer) -> None:
        self._broken.pop(peer, None)

    def report(self, failure: Failure, unconfirmed: int, peers: Collection[Peer]) -> None:
        """The message stays first, everybody can see why, and the log says so once (3.1). peers: all there are."""
        self._count(failure)
        if unconfirmed:
            self._repeated.inc(unconfirmed)
        self._condition.report(self._say(failure, peers))

    def bury(self, failure: Failure, peers: Collection[Peer]) -> str:
        """What the dead letter says."""
        self._count(failure)
        return self._say(failure, peers)

    def _count(self, failure: Failure) -> None:
        self._service.failures.labels(self._service.metrics.edge, PROTOCOL, failure.value).inc()

    def _say(self, failure: Failure, peers: Collection[Peer]) -> str:
        return f"{failure.value}: {self._why(failure, peers) if peers else 'no peer is known'}"

    def _why(self, failure: Failure, peers: Collection[Peer]) -> str:
        broken = [f"{peer}: {what}" for peer, what in self._broken.items() if peer in peers]
        more = [f"and {len(broken) - NAMED} more"] if len(broken) > NAMED else []
        return "; ".join((FAILURE_TEXTS[failure].format(self._number), *broken[:NAMED], *more))
