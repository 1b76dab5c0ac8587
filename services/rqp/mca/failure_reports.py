"""Explain failures to send in conditions and dead letters (rqp_mca.md 3.1)."""

from __future__ import annotations

from collections.abc import Collection

from protos.rqp_mca import Failure, Peer
from protos.types import PeerError
from services.rqp.condition import Condition
from services.rqp.mca.receiver import PROTOCOL
from services.rqp.service import RqpService

MAX_NAMED = 3  # peers in one text
FAILURE_TEXTS = {
    Failure.NO_RECEIVER: "no peer has queue {}",
    Failure.NOT_RESERVED: "no peer that has queue {} reserves it",
    Failure.DATA_TIMEOUT: "the peer that reserved queue {} does not confirm",
    Failure.CONNECTION_LOST: "the peer that reserved queue {} closes the connection instead of confirming",
    Failure.PROTOCOL_ERROR: "the peer that reserved queue {} breaks the protocol instead of confirming",
    Failure.UNEXPECTED_CONFIRM: "the peer that reserved queue {} sends a wrong confirmation",
}


class FailureReports:
    """The failures of one transmission queue. Peers that broke the protocol are named until they are asked again."""

    def __init__(self, service: RqpService, number: int, condition: Condition) -> None:
        self._service = service
        self._number = number
        self._condition = condition
        self._repeated = service.repeated.labels(service.metrics.edge, PROTOCOL)
        self._broken: dict[Peer, str] = {}

    def broke(self, peer: Peer, error: PeerError) -> None:
        """Remember that the peer broke the protocol."""
        self._broken[peer] = str(error)

    def asked(self, peer: Peer) -> None:
        """Forget what the peer did: it is asked again."""
        self._broken.pop(peer, None)

    def report(self, failure: Failure, unconfirmed: int, peers: Collection[Peer]) -> None:
        """Set the condition after a failure; the message stays first and is retried (3.1). peers: all known ones."""
        if unconfirmed:
            self._repeated.inc(unconfirmed)
        self._condition.report_failure(self.count(failure, peers))

    def count(self, failure: Failure, peers: Collection[Peer]) -> str:
        """Count a failure. Return its explanation for a condition or dead letter."""
        self._service.failures.labels(self._service.metrics.edge, PROTOCOL, failure.value).inc()
        return f"{failure.value}: {self._explain(failure, peers) if peers else 'no peer is known'}"

    def _explain(self, failure: Failure, peers: Collection[Peer]) -> str:
        broken = [f"{peer}: {what}" for peer, what in self._broken.items() if peer in peers]
        more = [f"and {len(broken) - MAX_NAMED} more"] if len(broken) > MAX_NAMED else []
        return "; ".join((FAILURE_TEXTS[failure].format(self._number), *broken[:MAX_NAMED], *more))
