"""Count the outcomes of both agents, with a label for each end and reason (rqp_cast.md 3.2, 4.2, 4.5, 5)."""

from __future__ import annotations

from protos.rqp_cast.receiver import BURIED_AS
from services.kit.metrics import Metrics
from services.kit.net import Denials
from services.rqp import measures
from services.rqp.cast.ports.wrong_protocol import WRONG_PROTOCOL


class Counts:
    """The counters; label values come from the protocol's enums, apart from a few named where they are counted."""

    def __init__(self, metrics: Metrics) -> None:
        self._edge = metrics.edge
        self._denials = Denials(metrics)
        self._unanswered = metrics.counter(measures.CAST_UNANSWERED)
        self._sessions = metrics.counter(measures.CAST_SESSIONS)
        self._unheard = metrics.counter(measures.CAST_UNHEARD)
        self._faults = metrics.counter(measures.CAST_FAULTS)
        self._unburied = metrics.counter(measures.CAST_UNBURIED)
        for reason in BURIED_AS:  # start at 0, so that the first loss shows as an increase
            self._unburied.labels(self._edge, reason)
        self.excess = metrics.counter(measures.CAST_EXCESS).labels(self._edge)
        self.clashes = metrics.counter(measures.CAST_CLASHES).labels(self._edge)
        self.held = metrics.counter(measures.CAST_HELD).labels(self._edge)
        self.unconfirmed = metrics.counter(measures.CAST_UNCONFIRMED).labels(self._edge)

    def unanswered(self, reason: str) -> None:
        """Count a question that is not answered."""
        self._unanswered.labels(self._edge, reason).inc()

    def session(self, end: str) -> None:
        """Count a receiving session that ended."""
        self._sessions.labels(self._edge, end).inc()

    def unheard(self, reason: str) -> None:
        """Count a connection that was closed because nothing expected it."""
        self._unheard.labels(self._edge, reason).inc()

    def fault(self, reason: str, peer: str = "", detail: str = "") -> None:
        """Count malformed input. Another protocol on this port is a refusal, as at every edge, and is logged."""
        if reason in WRONG_PROTOCOL:
            self._denials.record(reason, peer, detail)
            return
        self._faults.labels(self._edge, reason).inc()

    def unburied(self, reason: str) -> None:
        """Count a message that was lost because it could not be dead-lettered."""
        self._unburied.labels(self._edge, reason).inc()
