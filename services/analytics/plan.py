"""The plan of a run, written before it reads anything, so that a repeated run reads the same."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from services.analytics.documents import NOTHING_ELSE, Hour, HourOrNone, Id, parsed
from services.analytics.settings import Shape
from services.redis_stream.schema import Kind
from services.store.catalogue import parse_id

VERSION = 2
READ = (1, VERSION)
KINDS = (Kind.DEAD, Kind.SAMPLES)


@dataclass(frozen=True, slots=True)
class Planned:
    """The range of one stream to read: after `start`, up to `end`."""

    __pydantic_config__ = NOTHING_ELSE
    kind: Kind
    start: Id
    end: Id
    added: int  # entries ever added, at planning
    expected: int  # entries added in the range; negative: unknown


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a run."""

    __pydantic_config__ = NOTHING_ELSE
    run: str
    dataset: str  # of the store; '': a plan of an older version
    now_ms: int  # time of planning by the store's clock
    closed: HourOrNone  # hours before it are not computed again, 'YYYY-MM-DDTHH'; '': all are
    again: list[Hour]  # hours to compute again even without new rows
    shape: Shape
    streams: dict[str, Planned]
    # keys of streams that vanished or were rolled back since they were read; the loss is unknown
    lost_streams: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the plan as a JSON document."""
        told = {"version": VERSION, **asdict(self), "shape": self.shape.to_json()}
        if not self.lost_streams:
            del told["lost_streams"]  # older versions can then use the plan
        return told

    @classmethod
    def from_json(cls, told: Any) -> Plan:
        """Parse a plan. Raises ValueError."""
        return parsed(cls, told, READ, dataset="", again=[])

    def of(self, kind: Kind) -> dict[str, Planned]:
        """Return the non-empty ranges of this kind."""
        return {
            key: each
            for key, each in self.streams.items()
            if each.kind is kind and parse_id(each.end) > parse_id(each.start)
        }
