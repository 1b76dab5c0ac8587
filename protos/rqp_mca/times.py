"""Time limits and pauses of a sending MCA (rqp_mca.md 3.1, 3.2)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SenderSettings:
    """Time limits, and pauses after errors."""

    availability_timeout_s: float = 2.0  # for the answers of all receivers
    request_timeout_s: float = 2.0  # for that of each candidate
    data_timeout_s: float = 10.0  # for the confirm of what is out
    first_pause_s: float = 1.0  # after an error; then twice as long each time ...
    max_pause_s: float = 60.0  # ... up to this


class FailureRow:
    """The failures since the last delivery, and the pauses after them (3.1)."""

    __slots__ = ("_next_pause_s", "_settings", "count")

    def __init__(self, settings: SenderSettings) -> None:
        self._settings = settings
        self.end()

    def end(self) -> None:
        """Start anew: a message was delivered."""
        self.count = 0
        self._next_pause_s = self._settings.first_pause_s

    def pause_s(self) -> float:
        """Return how long to pause now, and double the next pause."""
        pause_s = self._next_pause_s
        self._next_pause_s = min(2 * pause_s, self._settings.max_pause_s)
        return pause_s
