"""The counters of both agents: every end, and every reason, has its label (rqp_cast.md 3.2, 4.2, 4.5, 5)."""

from __future__ import annotations

from services.kit.metrics import Metrics


class Counts:
    """Label values come from the enums of the protocol, and the few that are named here."""

    def __init__(self, metrics: Metrics) -> None:
        self._edge = metrics.edge
        reason = ("reason",)
        self._unanswered = metrics.counter(
            "rqp_cast_unanswered", "Questions that got no answer, by reason", reason
        )
        self._sessions = metrics.counter(
            "rqp_cast_sessions", "Sessions of the receiving agent, by end", ("end",)
        )
        self._unheard = metrics.counter(
            "rqp_cast_unheard", "Connections that were closed, as nobody waited for them", reason
        )
        self._faults = metrics.counter("rqp_cast_faults", "What came and was no message, by reason", reason)
        self._unburied = metrics.counter(
            "rqp_cast_unburied", "Damaged or unwanted messages that no dead letters took", reason
        )
        self.excess = metrics.counter("rqp_cast_excess_bytes", "Octets behind the end of a message").labels(
            self._edge
        )
        self.clashes = metrics.counter(
            "rqp_cast_id_clashes", "Ids that came again with other content: an alarm"
        ).labels(self._edge)
        self.held = metrics.counter(
            "rqp_cast_held_messages", "Too old to be repeated, and put with the dead letters: an alarm"
        ).labels(self._edge)
        self.unconfirmed = metrics.counter(
            "rqp_cast_confirmations_lost", "END_TRANSMISSION_MSGs that could not be sent"
        ).labels(self._edge)

    def unanswered(self, reason: str) -> None:
        self._unanswered.labels(self._edge, reason).inc()

    def session(self, end: str) -> None:
        self._sessions.labels(self._edge, end).inc()

    def unheard(self, reason: str) -> None:
        self._unheard.labels(self._edge, reason).inc()

    def fault(self, reason: str) -> None:
        self._faults.labels(self._edge, reason).inc()

    def unburied(self, reason: str) -> None:
        self._unburied.labels(self._edge, reason).inc()
