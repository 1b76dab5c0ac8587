"""Log refusals with a rate limit, so that neither one connection nor a flood fills the log."""

from __future__ import annotations

import enum
import logging
import time
from collections.abc import Callable

from services.kit.metrics.metrics import Metrics
from services.kit.session.session import Peer

log = logging.getLogger(__name__)


class Refusal(enum.StrEnum):
    """The kit's own reasons to refuse; the values are the metric's labels. Edges add reasons of their own."""

    CONNECTION_LIMIT = "connection_limit"  # the listener has reached max_connections
    ADDRESS_LIMIT = "address_limit"  # the address has reached max_connections_per_address
    NOT_ALLOWED = "not_allowed"  # the address is in none of the allowed networks
    TLS_HANDSHAKE = "tls_handshake"  # not TLS, no trusted certificate, or too slow
    TLS_RECORD = "tls_record"  # invalid TLS after the handshake
    PROXY_HEADER = "proxy_header"  # the connection begins with a PROXY protocol header, which no port accepts
    TLS_AT_A_PLAIN_PORT = "tls_at_a_plain_port"  # the client speaks TLS, the listener does not
    NO_DESCRIPTORS = "no_descriptors"  # the process is out of file descriptors; the connection waits
    WRITE_TIMEOUT = "write_timeout"  # the peer does not read its replies
    # unfinished input exceeds the process's limit, and this connection holds most
    INPUT_BUDGET = "input_budget"
    # unread output exceeds the process's limit, and this connection holds most
    OUTPUT_BUDGET = "output_budget"
    CLOSED_BY_OPERATOR = "closed_by_operator"  # closed on request, through the store


class Throttle:
    """A limit of `burst` log lines per kind and window; it counts the lines that were suppressed."""

    def __init__(self, burst: int = 10, window_s: float = 10.0) -> None:
        self._burst = burst
        self._window_s = window_s
        self._windows: dict[str, tuple[float, int]] = {}  # kind -> (end of the window, lines in it)

    def admit(self, kind: str, now: float) -> bool:
        """Count a line and return whether it may be logged."""
        end, seen = self._windows.get(kind, (now + self._window_s, 0))
        self._windows[kind] = (end, seen + 1)
        return seen < self._burst

    def expired(self, now: float) -> list[tuple[str, int]]:
        """Close the windows that have ended; return each kind with suppressed lines, and their number."""
        ended = [kind for kind, (end, _) in self._windows.items() if end <= now]
        counts = [(kind, self._windows.pop(kind)[1] - self._burst) for kind in ended]
        return [(kind, suppressed) for kind, suppressed in counts if suppressed > 0]


class Refusals:
    """The refusals of one listener, in the log."""

    def __init__(self, edge: str, listener: str) -> None:
        self._fields = {"edge": edge, "listener": listener}
        self._throttle = Throttle()

    def log(self, reason: str, peer: Peer, conn: str | None, detail: str, now: float) -> None:
        """Log a refusal. The kit's own reasons can come in floods, so these are throttled."""
        if reason in _KIT_REASONS and not self._throttle.admit(reason, now):
            return
        fields = {**self._fields, "peer": str(peer)}
        if conn is not None:
            fields["conn"] = conn
        if detail:
            fields["detail"] = detail
        _log(reason, fields)

    def tick(self, now: float) -> None:
        """Log how many refusals were suppressed."""
        _log_suppressed(self._throttle.expired(now), self._fields)


class Denials:
    """Refusals without a connection: of datagrams, and of requests that another node forwards."""

    def __init__(self, metrics: Metrics, now: Callable[[], float] = time.monotonic) -> None:
        self._metrics = metrics
        self._now = now
        self._throttle = Throttle()

    def record(self, reason: str, peer: str, detail: str) -> None:
        """Count a refusal and log it, throttled."""
        self._metrics.count_refusal(reason)
        now, fields = self._now(), {"edge": self._metrics.edge}
        _log_suppressed(self._throttle.expired(now), fields)
        if self._throttle.admit(reason, now):
            _log(reason, {**fields, "peer": peer, "detail": detail})


def _log(reason: str, fields: dict[str, str]) -> None:
    log.warning("refused: %s", reason, extra={**fields, "action": "refused", "reason": reason})


def _log_suppressed(suppressed: list[tuple[str, int]], fields: dict[str, str]) -> None:
    for reason, number in suppressed:
        extra = {**fields, "action": "refused_more", "reason": reason, "count": number}
        log.warning("refused %d more, not logged one by one: %s", number, reason, extra=extra)


_KIT_REASONS = frozenset(reason.value for reason in Refusal) - {Refusal.CLOSED_BY_OPERATOR.value}
