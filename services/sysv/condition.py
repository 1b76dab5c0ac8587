"""Track the state of a mapping: log once and count why it waits, and back off."""

from __future__ import annotations

import logging

from services.kit.metrics import Metrics
from services.sysv import measures

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.001
FAULT = "fault"  # an internal error


class Counters:
    """The metrics of all mappings."""

    def __init__(self, metrics: Metrics) -> None:
        self.edge = metrics.edge
        self.faults = metrics.local_errors
        self.messages = metrics.counter(measures.MESSAGES)
        self.dead = metrics.counter(measures.DEAD)
        self.waits = metrics.counter(measures.WAITS)
        self.waiting = metrics.gauge(measures.WAITING)


class Condition:
    """The state of one mapping."""

    def __init__(self, mapping: str, counters: Counters) -> None:
        self.mapping = mapping
        self._counters = counters
        self._reason = ""
        self._carried = counters.messages.labels(counters.edge, mapping)
        self._waiting = counters.waiting.labels(counters.edge, mapping)

    def carried(self, number: int = 1) -> None:
        """Count messages that were carried; the mapping no longer waits."""
        self._carried.inc(number)
        self.clear()

    def buried(self, reason: str) -> None:
        """Count a message that was moved to the dead letters."""
        self._counters.dead.labels(self._counters.edge, self.mapping, reason).inc()
        log.warning(
            "a message was moved to the dead letters", extra={"action": "sysv_dead", **self._fields(reason)}
        )
        self.clear()

    def wait(self, reason: str, why: str) -> None:
        """Take note that the mapping cannot continue; log it when it begins or the reason changes."""
        if reason == self._reason:
            return
        self._reason = reason
        self._waiting.set(1)
        self._counters.waits.labels(self._counters.edge, self.mapping, reason).inc()
        log.warning("%s", why, extra={"action": "sysv_waits", **self._fields(reason)})

    def failed(self, error: Exception, where: str = "") -> None:
        """Log an internal error; `where` is the message that caused it, if known."""
        self._counters.faults.inc()
        text = f"internal error in mapping {self.mapping}" + (f" at {where}" if where else "")
        fields = {"action": "sysv_failed", **self._fields(FAULT)}
        log.error("%s: %r", text, error, exc_info=error, extra=fields)
        self.wait(FAULT, f"{text}: retrying")

    def clear(self) -> None:
        """Take note that the mapping continues."""
        if self._reason:
            fields = self._fields(self._reason)
            log.info("mapping %s continues", self.mapping, extra={"action": "sysv_goes_on", **fields})
            self._reason = ""
            self._waiting.set(0)

    def _fields(self, reason: str) -> dict[str, str]:
        return {"mapping": self.mapping, "reason": reason}


class Pause:
    """Exponential back-off, up to a longest pause."""

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._next_s = FIRST_PAUSE_S

    def next(self) -> float:
        """Return the next pause in seconds."""
        now_s = min(self._next_s, self._longest_s)
        self._next_s = min(2 * now_s, self._longest_s)
        return now_s

    def reset(self) -> None:
        """Begin with the shortest pause again."""
        self._next_s = FIRST_PAUSE_S
