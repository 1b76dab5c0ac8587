"""What a run reads, written down before it reads anything: a run that is begun again reads the same."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from services.analytics.documents import NOTHING_ELSE, Hour, HourOrNone, Id, parsed
from services.analytics.schema import Kind
from services.analytics.settings import Shape
from services.store.catalogue import parse_id

VERSION = 2
READ = (1, VERSION)
KINDS = (Kind.DEAD, Kind.SAMPLES)


@dataclass(frozen=True, slots=True)
class Planned:
    """Of one stream what lies behind `start`, up to `end`."""

    __pydantic_config__ = NOTHING_ELSE
    kind: Kind
    start: Id
    end: Id
    added: int  # entries it had ever had at the end
    expected: int  # entries that were added between the two; less than 0: nobody knows


@dataclass(frozen=True, slots=True)
class Plan:
    __pydantic_config__ = NOTHING_ELSE
    run: str
    dataset: str  # of the store; '': a plan of before does not say
    now_ms: int  # of the store's clock
    closed: HourOrNone  # hours before this one are not computed anew, 'YYYY-MM-DDTHH'; '': all are
    again: list[Hour]  # hours that are computed anew whether anything comes for them or not
    shape: Shape
    streams: dict[str, Planned]
    # keys of those that vanished or went back since they were read: how much of them is missing nobody knows
    lost_streams: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        told = {"version": VERSION, **asdict(self), "shape": self.shape.to_json()}
        if not self.lost_streams:
            del told["lost_streams"]  # so a program of before can carry it out
        return told

    @classmethod
    def from_json(cls, told: Any) -> Plan:
        """Raises ValueError."""
        return parsed(cls, told, READ, dataset="", again=[])

    def of(self, kind: Kind) -> dict[str, Planned]:
        """What there is to read of this kind."""
        return {
            key: each
            for key, each in self.streams.items()
            if each.kind is kind and parse_id(each.end) > parse_id(each.start)
        }
