"""What a run reads, written down before it reads anything: a run that is begun again reads the same."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from services.analytics.finding import known_streams, open_store
from services.analytics.hours import later
from services.analytics.losses import DataLoss
from services.analytics.options import Options
from services.analytics.schema import Kind
from services.analytics.settings import Settings, Shape
from services.analytics.state import State
from services.store.reading import BEGINNING, parse_id

VERSION = 2
KINDS = (Kind.DEAD, Kind.SAMPLES)


@dataclass(frozen=True, slots=True)
class Planned:
    """Of one stream what lies behind `start`, up to `end`."""

    kind: Kind
    start: str
    end: str
    added: int  # entries it had ever had at the end
    expected: int  # entries that were added between the two; -1: nobody knows


@dataclass(frozen=True, slots=True)
class Plan:
    run: str
    now_ms: int  # of the store's clock
    closed: str  # hours before this one are not computed anew, 'YYYY-MM-DDTHH'; '': all are
    again: list[str]  # hours that are computed anew whether anything comes for them or not
    shape: Shape
    streams: dict[str, Planned]

    def to_json(self) -> dict[str, Any]:
        return {"version": VERSION, **asdict(self), "shape": self.shape.to_json()}

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Plan:
        streams = {
            key: Planned(**{**each, "kind": Kind(each["kind"])}) for key, each in told["streams"].items()
        }
        shape, again = Shape.from_json(told["shape"]), told.get("again", [])
        return cls(told["run"], told["now_ms"], told["closed"], again, shape, streams)

    def of(self, kind: Kind) -> dict[str, Planned]:
        """What there is to read of this kind."""
        return {
            key: each
            for key, each in self.streams.items()
            if each.kind is kind and parse_id(each.end) > parse_id(each.start)
        }


def freeze(settings: Settings, state: State) -> Plan:
    """A plan up to what the store has now. Raises DataLoss, StoreError."""
    streams: dict[str, Planned] = {}
    options = Options(url=settings.store, patience_s=settings.patience_s)
    with open_store(options) as reading:
        now_ms = reading.now_ms()
        for kind in KINDS:
            for stream in known_streams(reading, Options(url=settings.store, kind=kind)):
                found = reading.state(stream.key)
                start = state.streams.get(stream.key, BEGINNING)
                if found is None:
                    if kind is Kind.SAMPLES and start != BEGINNING:
                        _lose(
                            settings.shape, f"{stream.key} is not there any more, and was read up to {start}"
                        )
                    continue
                if parse_id(found.last) < parse_id(start):
                    _lose(settings.shape, f"{stream.key} ends at {found.last}, and was read up to {start}")
                    start = found.last
                before = state.added.get(stream.key, 0)
                expected = found.added - before if found.added >= before else -1
                streams[stream.key] = Planned(kind, start, found.last, found.added, expected)
    closed = later(state.newest, -settings.shape.late_hours) if state.newest else ""
    return Plan(settings.run, now_ms, closed, state.again(closed, now_ms), settings.shape, streams)


def _lose(shape: Shape, why: str) -> None:
    if shape.fail_on_loss:
        raise DataLoss(
            f"{why}: the store lost data, or is another one; with --no-fail-on-data-loss the run goes on"
        )
