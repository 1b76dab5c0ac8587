"""How a mapping fares: what keeps it from going on, told once, and counted; and how long to wait."""

from __future__ import annotations

import logging

from services.kit.metrics import Metrics
from services.sysv import measures

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.001
FAULT = "fault"  # ours


class Figures:
    """What is counted of all mappings."""

    def __init__(self, metrics: Metrics) -> None:
        self.edge = metrics.edge
        self.faults = metrics.local_errors
        self.messages = metrics.counter(measures.MESSAGES)
        self.dead = metrics.counter(measures.DEAD)
        self.waits = metrics.counter(measures.WAITS)
        self.waiting = metrics.gauge(measures.WAITING)


class Condition:
    """Of one mapping."""

    def __init__(self, mapping: str, figures: Figures) -> None:
        self.mapping = mapping
        self._figures = figures
        self._reason = ""
        self._carried = figures.messages.labels(figures.edge, mapping)
        self._waiting = figures.waiting.labels(figures.edge, mapping)

    def carried(self, number: int = 1) -> None:
        """Messages have arrived; whatever kept the mapping is over."""
        self._carried.inc(number)
        self.clear()

    def buried(self, reason: str) -> None:
        """One was moved to the dead letters."""
        self._figures.dead.labels(self._figures.edge, self.mapping, reason).inc()
        log.warning(
            "a message was moved to the dead letters", extra={"action": "sysv_dead", **self._fields(reason)}
        )
        self.clear()

    def tell(self, reason: str, why: str) -> None:
        """It cannot go on. Logged when it begins, or when the reason is another one."""
        if reason == self._reason:
            return
        self._reason = reason
        self._waiting.set(1)
        self._figures.waits.labels(self._figures.edge, self.mapping, reason).inc()
        log.warning("%s", why, extra={"action": "sysv_waits", **self._fields(reason)})

    def failed(self, error: Exception, where: str = "") -> None:
        """A fault of ours, told with its traceback; `where`: the message that was at hand, if it is known."""
        self._figures.faults.inc()
        text = f"mapping {self.mapping} failed" + (f" at {where}" if where else "")
        fields = {"action": "sysv_failed", **self._fields(FAULT)}
        log.error("%s: %r", text, error, exc_info=error, extra=fields)
        self.tell(FAULT, f"{text}: it is tried again")

    def clear(self) -> None:
        """It goes on."""
        if self._reason:
            fields = self._fields(self._reason)
            log.info("mapping %s goes on", self.mapping, extra={"action": "sysv_goes_on", **fields})
            self._reason = ""
            self._waiting.set(0)

    def _fields(self, reason: str) -> dict[str, str]:
        return {"mapping": self.mapping, "reason": reason}


class Pause:
    """Seconds to wait, each time twice as long, up to the longest."""

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._next_s = FIRST_PAUSE_S

    def next(self) -> float:
        now_s = min(self._next_s, self._longest_s)
        self._next_s = min(2 * now_s, self._longest_s)
        return now_s

    def reset(self) -> None:
        self._next_s = FIRST_PAUSE_S
