"""The state of an output: how far its runs have come."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from typing import Any

from services.analytics.documents import NOTHING_ELSE, Hour, HourOrNone, Id, parsed
from services.analytics.hours import has_ended, hour_at

STATE = "state.json"
VERSION = 3
READ = (1, 2, VERSION)  # fields missing in older versions have their defaults
MOST_SKIPPED = 1000  # hours that are kept


@dataclass(frozen=True, slots=True)
class State:
    """The data that the next run needs of all earlier ones."""

    __pydantic_config__ = NOTHING_ELSE
    last_run: str = ""
    now_ms: int = 0  # time of the last plan by the store's clock; 0: never
    dataset: str = ""  # of the store; '': unknown
    newest: HourOrNone = ""  # hour of the newest row, 'YYYY-MM-DDTHH', at most that of `now_ms`
    unfinished: list[Hour] = field(default_factory=list)  # hours computed before they had ended
    skipped: list[Hour] = field(default_factory=list)  # closed hours with new rows
    streams: dict[str, Id] = field(default_factory=dict)  # id of the last entry read, by the stream's key
    added: dict[str, int] = field(default_factory=dict)  # entries ever added to the stream by then
    # what runs could not read or use, by hour of planning; None: a state of an older version
    missing: dict[str, dict[str, int]] | None = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the state as a JSON document."""
        return {"version": VERSION, **asdict(self)}

    @classmethod
    def from_json(cls, told: Any) -> State:
        """Parse a state. Raises ValueError."""
        return parsed(cls, told, READ, missing=None)

    def again(self, closed: str, now_ms: int) -> list[str]:
        """Return hours to compute again even without new rows; none before `closed`."""
        ended = [hour for hour in self.unfinished if has_ended(hour, now_ms)]
        return sorted(hour for hour in {*ended, *self.skipped} if hour >= closed)

    def hours_after(
        self, now_ms: int, computed: Collection[str], skipped: Collection[str], newest: str
    ) -> dict[str, Any]:
        """Return the next state's fields on hours. newest: the newest hour with rows in this run; '': none."""
        unfinished = {hour for hour in {*self.unfinished, *computed} if not has_ended(hour, now_ms)}
        left = {*self.skipped, *skipped} - {*computed}
        return {
            "now_ms": now_ms,
            "newest": min(max(self.newest, newest), hour_at(now_ms)),
            "unfinished": sorted(unfinished),
            "skipped": sorted(left)[-MOST_SKIPPED:],
        }
