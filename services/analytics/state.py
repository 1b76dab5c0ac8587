"""How far all runs of an output have come: what the next one begins with."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from typing import Any

from services.analytics.documents import NOTHING_ELSE, Hour, HourOrNone, Id, parsed
from services.analytics.hours import has_ended, hour_at

STATE = "state.json"
VERSION = 3
READ = (1, 2, VERSION)  # what an older one does not say is as if nothing were known of it
MOST_SKIPPED = 1000  # hours that are remembered


@dataclass(frozen=True, slots=True)
class State:
    __pydantic_config__ = NOTHING_ELSE
    last_run: str = ""
    now_ms: int = 0  # when the last run was planned, by the store's clock; 0: never
    dataset: str = ""  # of the store; '': nobody knows
    newest: HourOrNone = ""  # hour of the newest row, 'YYYY-MM-DDTHH'; none that had not begun at `now_ms`
    unfinished: list[Hour] = field(default_factory=list)  # hours whose tables were made before they had ended
    skipped: list[Hour] = field(default_factory=list)  # hours with rows that came when they were closed
    streams: dict[str, Id] = field(default_factory=dict)  # id of the last entry read, by the stream's key
    added: dict[str, int] = field(default_factory=dict)  # entries the stream had ever had then
    # what runs missed, by the hour in which they were planned; None: the runs before have not put it here
    missing: dict[str, dict[str, int]] | None = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"version": VERSION, **asdict(self)}

    @classmethod
    def from_json(cls, told: Any) -> State:
        """Raises ValueError."""
        return parsed(cls, told, READ, missing=None)

    def again(self, closed: str, now_ms: int) -> list[str]:
        """Hours to be computed anew, whether anything comes for them or not; none before `closed`."""
        ended = [hour for hour in self.unfinished if has_ended(hour, now_ms)]
        return sorted(hour for hour in {*ended, *self.skipped} if hour >= closed)

    def hours_after(
        self, now_ms: int, computed: Collection[str], skipped: Collection[str], newest: str
    ) -> dict[str, Any]:
        """What the next state says of hours. newest: the newest one of which the run has rows, '' if it has none."""
        unfinished = {hour for hour in {*self.unfinished, *computed} if not has_ended(hour, now_ms)}
        left = {*self.skipped, *skipped} - {*computed}
        return {
            "now_ms": now_ms,
            "newest": min(max(self.newest, newest), hour_at(now_ms)),
            "unfinished": sorted(unfinished),
            "skipped": sorted(left)[-MOST_SKIPPED:],
        }
