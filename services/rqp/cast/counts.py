"""The counters of both agents: every end, and every reason, has its label (rqp_cast.md 3.2, 4.2, 4.5, 5)."""

from __future__ import annotations

from protos.rqp_cast.receiver import BURIED_AS
from services.kit.metrics import Metrics
from services.kit.net import Denials
from services.rqp import measures
from services.rqp.cast.ports.mistaken import NAMED


class Counts:
    """Label values come from the enums of the protocol, and the few that are named here."""

    def __init__(self, metrics: Metrics) -> None:
        self._edge = metrics.edge
        self._denials = Denials(metrics)
        self._unanswered = metrics.counter(measures.CAST_UNANSWERED)
        self._sessions = metrics.counter(measures.CAST_SESSIONS)
        self._unheard = metrics.counter(measures.CAST_UNHEARD)
        self._faults = metrics.counter(measures.CAST_FAULTS)
        self._unburied = metrics.counter(measures.CAST_UNBURIED)
        for reason in BURIED_AS:  # each is a loss: its first one must be seen to rise from 0
            self._unburied.labels(self._edge, reason)
        self.excess = metrics.counter(measures.CAST_EXCESS).labels(self._edge)
        self.clashes = metrics.counter(measures.CAST_CLASHES).labels(self._edge)
        self.held = metrics.counter(measures.CAST_HELD).labels(self._edge)
        self.unconfirmed = metrics.counter(measures.CAST_UNCONFIRMED).labels(self._edge)

    def unanswered(self, reason: str) -> None:
        self._unanswered.labels(self._edge, reason).inc()

    def session(self, end: str) -> None:
        self._sessions.labels(self._edge, end).inc()

    def unheard(self, reason: str) -> None:
        self._unheard.labels(self._edge, reason).inc()

    def fault(self, reason: str, peer: str = "", detail: str = "") -> None:
        """Count what came and was no message. What is named is a refusal, as at every edge, and is logged."""
        if reason in NAMED:
            self._denials.record(reason, peer, detail)
            return
        self._faults.labels(self._edge, reason).inc()

    def unburied(self, reason: str) -> None:
        self._unburied.labels(self._edge, reason).inc()
