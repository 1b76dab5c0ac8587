"""The table `runs`: what each run has read, and what the next one must know of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from services.analytics import delta
from services.analytics.bronze.log import appended
from services.analytics.hours import hour_at
from services.analytics.preflight import KINDS, Before, Seen, expected
from services.analytics.tables import BRONZE, QUARANTINE, RUNS
from services.redis_stream.schema import Kind

LATEST_MS = (1 << 63) - 1
MISSING = {  # fields of the report's Missing, and the columns that have them
    "lost_samples": "samples_lost",
    "lost_streams": "streams_lost",
    "quarantined_dead": "dead_quarantined",
    "quarantined_samples": "samples_quarantined",
}


@dataclass(frozen=True, slots=True)
class Run:
    """A row of the table; see its columns in `tables.RUNS`."""

    run: str
    number: int
    dataset: str
    now_ms: int
    dead: int
    dead_quarantined: int
    dead_gone: int
    samples: int
    samples_quarantined: int
    samples_lost: int
    streams_lost: int
    is_maintained: bool
    ends: dict[str, str] = field(repr=False)
    added: dict[str, int] = field(repr=False)
    known: dict[str, int]
    seconds: dict[str, float]

    def shown(self) -> dict[str, Any]:
        """Return what a log line shows of it."""
        hidden = ("ends", "added", "known")
        return {name: value for name, value in asdict(self).items() if name not in hidden}

    def records(self) -> dict[str, dict[str, int]]:
        """Return the report's counts of the run, by kind."""
        dead = _records(self.dead, self.dead_quarantined)
        samples = _records(self.samples, self.samples_quarantined)
        return {"dead": {**dead, "gone": self.dead_gone}, "samples": {**samples, "lost": self.samples_lost}}

    def missing(self) -> tuple[str, dict[str, int]]:
        """Return the hour of the run, and what is not in the tables of it, for the report."""
        return _missing(asdict(self))


def _records(read: int, quarantined: int) -> dict[str, int]:
    return {"read": read, "archived": read - quarantined, "quarantined": quarantined}


def last(output: str) -> Run | None:
    """Return the newest run. Raises TableError."""
    found = delta.query(
        output, "SELECT * FROM runs ORDER BY number DESC, now_ms DESC LIMIT 1", RUNS
    ).to_pylist()
    return Run(**{name: _plain(value) for name, value in found[0].items()}) if found else None


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, list) else value  # Arrow's maps are lists of pairs


def before(run: Run | None) -> Before:
    """Return what the next run must know of a run."""
    return Before() if run is None else Before(run.dataset, run.now_ms, run.ends, run.added)


def missing_since(output: str, first_ms: int) -> list[tuple[str, dict[str, int]]]:
    """Return `Run.missing` of the runs that began at this time or later. Raises TableError."""
    names = ", ".join(MISSING.values())
    found = delta.query(output, f"SELECT now_ms, {names} FROM runs WHERE now_ms >= {first_ms}", RUNS)
    return [_missing(row) for row in found.to_pylist()]


def _missing(row: Mapping[str, int]) -> tuple[str, dict[str, int]]:
    return hour_at(row["now_ms"]), {name: row[column] for name, column in MISSING.items()}


def is_done(output: str, run: str) -> bool:
    """Return whether a run of this name has ended. Raises TableError."""
    return len(delta.query(output, f"SELECT run FROM runs WHERE run = '{run}' LIMIT 1", RUNS)) > 0


def last_maintained_ms(output: str) -> int:
    """Return the store's time of the last run with maintenance, otherwise of the first run; 2**63 - 1 before that."""
    times = "max(CASE WHEN is_maintained THEN now_ms END) AS last, min(now_ms) AS first"
    (row,) = delta.query(output, f"SELECT {times} FROM runs", RUNS).to_pylist()
    return int(row["last"] or row["first"] or LATEST_MS)


def append(output: str, row: Run) -> None:
    """Append the row to the table. Raises TableError."""
    delta.append(output, RUNS, [asdict(row)])


class Counted:
    """Counts of new rows since the run before, by the tables themselves: rows of killed runs are included."""

    def __init__(self, output: str, previous: Run | None) -> None:
        """Look at the bronze tables. Raises TableError, OutputError."""
        self._output = output
        self._known: dict[str, int] = previous.known if previous is not None else {}
        self.new = {
            kind: appended(output, BRONZE[kind], self._known.get(_version(kind), -1)) for kind in KINDS
        }
        self.known = {_version(kind): self.new[kind].version for kind in KINDS}

    def quarantined(self, kind: Kind) -> int:
        """Return the number of rows added to the quarantine of this kind."""
        self.settle(kind)
        return max(0, self.known[f"rows of {kind}"] - self._known.get(f"rows of {kind}", 0))

    def settle(self, kind: Kind) -> None:
        """Note the length of the quarantine, also after the retention has shortened it."""
        found = delta.query(
            self._output, f"SELECT count(*) AS number FROM {QUARANTINE[kind].view}", QUARANTINE[kind]
        )
        self.known[f"rows of {kind}"] = found["number"][0].as_py()


def _version(kind: Kind) -> str:
    return f"version of {kind}"


def missing(seen: Seen, previous: Run | None, kind: Kind, read: int) -> int:
    """Return how many entries were gone before they were read."""
    is_same = previous is not None and previous.dataset == seen.dataset
    return max(0, expected(seen, before(previous if is_same else None), kind) - read)
