"""The results of a run, as saved in benchmarks/results: medians over rounds, ratios round by round."""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from benchmarks.generator import Outcome
from benchmarks.machine import Machine

RESULTS = Path(__file__).parent / "results"


def median(values: Iterable[float]) -> float:
    """Return the median; 0 for no values."""
    kept = list(values)
    return statistics.median(kept) if kept else 0.0


@dataclass(slots=True)
class Cell:
    """The figures of each round, in order, for one peer, operation and shape."""

    rates: list[float] = field(default_factory=list)  # messages/s
    p50_us: list[float] = field(default_factory=list)
    p99_us: list[float] = field(default_factory=list)
    generator_busy: list[float] = field(default_factory=list)  # share of a core that the generator used
    refused: int = 0

    def add(self, outcome: Outcome) -> None:
        self.rates.append(round(outcome.rate, 1))
        self.p50_us.append(outcome.p50_us)
        self.p99_us.append(outcome.p99_us)
        self.generator_busy.append(round(outcome.cpu_s / outcome.seconds, 3) if outcome.seconds else 0.0)
        self.refused += outcome.refused

    @property
    def rate(self) -> float:
        return median(self.rates)


@dataclass(slots=True)
class PeerResult:
    name: str
    title: str
    promise: str
    version: str = ""
    not_run: str = ""  # the reason; "" when it ran
    cells: dict[str, Cell] = field(default_factory=dict)  # by "put 10 x 200"


@dataclass(frozen=True, slots=True)
class Target:
    sign: Literal[">=", "<="]
    value: float

    def is_met(self, value: float) -> bool:
        return value >= self.value if self.sign == ">=" else value <= self.value

    def __str__(self) -> str:
        return f"{self.sign} {self.value:g}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One figure with its target; without values, `note` is the reason why it was not measured."""

    measure: str
    what: str
    values: Sequence[float] = ()  # one a round
    unit: str = ""
    target: Target | None = None
    note: str = ""

    @property
    def value(self) -> float:
        return median(self.values)

    @property
    def verdict(self) -> str:
        if not self.values:
            return "not run"
        if self.target is None:
            return ""
        return "met" if self.target.is_met(self.value) else "missed"


@dataclass(slots=True)
class Results:
    date: str  # ISO
    machine: Machine
    generator: str
    rounds: int
    quick: bool
    commit: str
    peers: list[PeerResult] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def generator_busy(self) -> float:
        """Return the largest share of a core that the generator used on any peer."""
        cells = [cell for peer in self.peers if peer.name != "ceiling" for cell in peer.cells.values()]
        return max((median(cell.generator_busy) for cell in cells), default=0.0)

    def peer(self, name: str) -> PeerResult | None:
        return next((peer for peer in self.peers if peer.name == name), None)


def ratios(of: Cell | None, to: Cell | None) -> list[float]:
    """Return the ratios round by round, so that a disturbance of the machine affects both sides."""
    if of is None or to is None:
        return []
    return [a / b for a, b in zip(of.rates, to.rates, strict=False) if b > 0]


def save(results: Results, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(dataclasses.asdict(results), indent=1) + "\n")


def load(path: Path) -> Results:
    """Load a file written by `save`. Raises ValueError if the file has another format."""
    raw: dict[str, Any] = json.loads(path.read_text())
    try:
        raw["machine"] = Machine(**raw["machine"])
        raw["peers"] = [_peer(each) for each in raw["peers"]]
        raw["findings"] = [_finding(each) for each in raw["findings"]]
        return Results(**raw)
    except (KeyError, TypeError) as wrong:
        raise ValueError(f"{path} is not a result of this benchmark: {wrong}") from wrong


def _peer(raw: dict[str, Any]) -> PeerResult:
    return PeerResult(**{**raw, "cells": {name: Cell(**cell) for name, cell in raw["cells"].items()}})


def _finding(raw: dict[str, Any]) -> Finding:
    target = raw["target"]
    return Finding(**{**raw, "values": tuple(raw["values"]), "target": Target(**target) if target else None})


def newest_full(folder: Path) -> Path | None:
    """Return the latest result of a full run: a file named by its date alone."""
    return max(folder.glob("????-??-??.json"), default=None)
