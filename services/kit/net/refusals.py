"""Refusals: counted by reason always, logged so that neither one connection nor a flood fills the log."""

from __future__ import annotations

import enum
import logging
import time
from collections.abc import Callable

from services.kit.metrics.metrics import Metrics
from services.kit.session.session import Peer

log = logging.getLogger(__name__)


class Refusal(enum.StrEnum):
    """Why the kit itself refuses; the values are the metric's labels. Edges add reasons of their own."""

    CONNECTION_LIMIT = "connection_limit"  # the listener has as many connections as it may
    ADDRESS_LIMIT = "address_limit"  # this address has as many connections as one may
    NOT_ALLOWED = "not_allowed"  # the address is in none of the listener's networks
    TLS_HANDSHAKE = "tls_handshake"  # no TLS, no certificate we know, or not in time
    TLS_RECORD = "tls_record"  # after the handshake: what came is not TLS any more
    PROXY_HEADER = "proxy_header"  # a load balancer sends the PROXY protocol, which no port takes
    TLS_AT_A_PLAIN_PORT = "tls_at_a_plain_port"  # the client speaks TLS, and the listener has none
    NO_DESCRIPTORS = "no_descriptors"  # the process may open no further file; the connection waits
    WRITE_TIMEOUT = "write_timeout"  # the peer does not read what it asked for
    INPUT_BUDGET = "input_budget"  # all connections together hold too much, and this one holds most
    OUTPUT_BUDGET = "output_budget"  # the same of output that the peers do not read
    CLOSED_BY_OPERATOR = "closed_by_operator"  # somebody asked for it, through the store


class Throttle:
    """At most `burst` lines of a kind in `window_s`; what is held back is told as a number."""

    def __init__(self, burst: int = 10, window_s: float = 10.0) -> None:
        self._burst = burst
        self._window_s = window_s
        self._windows: dict[str, tuple[float, int]] = {}  # kind -> (end of the window, seen in it)

    def admit(self, kind: str, now: float) -> bool:
        """May this one be logged?"""
        end, seen = self._windows.get(kind, (now + self._window_s, 0))
        self._windows[kind] = (end, seen + 1)
        return seen < self._burst

    def over(self, now: float) -> list[tuple[str, int]]:
        """Close the windows that have ended: the kinds of which some were held back, and how many."""
        ended = [kind for kind, (end, _) in self._windows.items() if end <= now]
        counts = [(kind, self._windows.pop(kind)[1] - self._burst) for kind in ended]
        return [(kind, held_back) for kind, held_back in counts if held_back > 0]


class Refusals:
    """The refusals of one listener, as the log tells them."""

    def __init__(self, edge: str, listener: str) -> None:
        self._fields = {"edge": edge, "listener": listener}
        self._throttle = Throttle()

    def log(self, reason: str, peer: Peer, conn: str | None, detail: str, now: float) -> None:
        """One line. The kit's own reasons can come in floods from strangers: those are throttled."""
        if reason in _KIT_REASONS and not self._throttle.admit(reason, now):
            return
        fields = {**self._fields, "action": "refused", "reason": reason, "peer": str(peer)}
        if conn is not None:
            fields["conn"] = conn
        if detail:
            fields["detail"] = detail
        log.warning("refused: %s", reason, extra=fields)

    def tick(self, now: float) -> None:
        """Tell what was held back."""
        for reason, number in self._throttle.over(now):
            fields = {**self._fields, "action": "refused_more", "reason": reason, "count": number}
            log.warning("refused %d more: %s", number, reason, extra=fields)


class Denials:
    """Refusals of those who are not at a listener of ours: they send datagrams, or others pass on what they say."""

    def __init__(self, metrics: Metrics, now: Callable[[], float] = time.monotonic) -> None:
        self._metrics = metrics
        self._now = now
        self._throttle = Throttle()

    def record(self, reason: str, peer: str, detail: str) -> None:
        """Counted always, logged as far as it is no flood."""
        self._metrics.count_refusal(reason)
        now = self._now()
        fields = {"edge": self._metrics.edge, "reason": reason}
        for held_back, number in self._throttle.over(now):
            more = {**fields, "action": "refused_more", "reason": held_back, "count": number}
            log.warning("refused %d more: %s", number, held_back, extra=more)
        if self._throttle.admit(reason, now):
            log.warning(
                "refused: %s", reason, extra={**fields, "action": "refused", "peer": peer, "detail": detail}
            )


_KIT_REASONS = frozenset(reason.value for reason in Refusal) - {Refusal.CLOSED_BY_OPERATOR.value}
