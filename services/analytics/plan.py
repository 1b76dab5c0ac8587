"""What a run reads, written down before it reads anything: a run that is begun again reads the same."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from services.analytics.files import Files
from services.analytics.finding import known_streams, open_store
from services.analytics.losses import DataLoss
from services.analytics.options import Options
from services.analytics.places import OutputError
from services.analytics.schema import Kind
from services.analytics.settings import Settings, Shape
from services.store.reading import BEGINNING, parse_id

STATE = "state.json"
VERSION = 1
KINDS = (Kind.DEAD, Kind.SAMPLES)


@dataclass(frozen=True, slots=True)
class State:
    """How far all runs together have come."""

    last_run: str = ""
    newest: str = ""  # hour of the newest row, 'YYYY-MM-DDTHH'
    streams: dict[str, str] = field(default_factory=dict)  # id of the last entry read, by the stream's key
    added: dict[str, int] = field(default_factory=dict)  # entries the stream had ever had then

    def to_json(self) -> dict[str, Any]:
        return {"version": VERSION, **asdict(self)}


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
    shape: Shape
    streams: dict[str, Planned]

    def to_json(self) -> dict[str, Any]:
        return {"version": VERSION, **asdict(self), "shape": self.shape.to_json()}

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Plan:
        streams = {
            key: Planned(**{**each, "kind": Kind(each["kind"])}) for key, each in told["streams"].items()
        }
        return cls(told["run"], told["now_ms"], told["closed"], Shape.from_json(told["shape"]), streams)

    def of(self, kind: Kind) -> dict[str, Planned]:
        """What there is to read of this kind."""
        return {
            key: each
            for key, each in self.streams.items()
            if each.kind is kind and parse_id(each.end) > parse_id(each.start)
        }


def read_state(files: Files) -> State:
    """How far runs have come. Raises OutputError for a file of another version."""
    if not files.exists(STATE):
        return State()
    told = files.read_json(STATE)
    if told.pop("version", None) != VERSION:
        raise OutputError(f"{files.uri(STATE)} is of another version: this program writes version {VERSION}")
    return State(**told)


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
    return Plan(
        settings.run, now_ms, closed_before(state.newest, settings.shape.late_hours), settings.shape, streams
    )


def _lose(shape: Shape, why: str) -> None:
    if shape.fail_on_loss:
        raise DataLoss(
            f"{why}: the store lost data, or is another one; with --no-fail-on-data-loss the run goes on"
        )


def closed_before(newest: str, late_hours: int) -> str:
    """The oldest hour that may still change when `newest` is the newest."""
    if not newest:
        return ""
    return (datetime.strptime(newest, "%Y-%m-%dT%H") - timedelta(hours=late_hours)).strftime("%Y-%m-%dT%H")
