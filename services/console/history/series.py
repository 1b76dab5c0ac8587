"""Aggregate a queue's samples to time series: rates, depths and quantiles in steps of equal length."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from services.store.model import CLASSES, PUT_S, WAIT_S
from services.store.upkeep import StoredSample

DEPTH_LASTS_MS = 6 * 60_000  # an unchanged queue has a sample every 5 minutes
FLOWS = ("in", "out", "acked", "refused")
SIZES = {"depth": "length", "inFlight": "leased", "dead": "dead", "oldestAgeMs": "oldest_ms"}
QUANTILES = {"50": 0.5, "99": 0.99}


@dataclass(frozen=True, slots=True)
class Flow:
    """A sample of rates: what a process did with the queue in the `ms` before `at_ms`."""

    at_ms: int
    ms: int
    numbers: tuple[int, ...]  # of FLOWS
    put: str  # counts by class, parsed only if needed
    wait: str


@dataclass(frozen=True, slots=True)
class Depth:
    """A sample of sizes."""

    at_ms: int
    length: int
    leased: int
    dead: int
    oldest_ms: int


Kept = Flow | Depth


def shares(flow: Flow, start_ms: int, step_ms: int) -> Iterator[tuple[int, float]]:
    """Yield the steps that a sample covers, counted from `start_ms`, and the share of each.

    Samples of different processes are not aligned with each other or with steps.
    """
    ms = max(flow.ms, 1)
    begin = flow.at_ms - ms
    for at in range((begin - start_ms) // step_ms, (flow.at_ms - 1 - start_ms) // step_ms + 1):
        low = start_ms + at * step_ms
        yield at, (min(flow.at_ms, low + step_ms) - max(begin, low)) / ms


def parse(sample: StoredSample) -> tuple[str, Kept] | None:
    """Return the queue's name and the parsed sample; None for one of another kind or version."""
    fields = sample.fields
    try:
        match fields.get("kind"), fields.get("v"):
            case "queue", "1":
                refused = sum(int(each.rpartition("=")[2]) for each in fields["refused"].split(",") if each)
                numbers = (int(fields["in"]), int(fields["out"]), int(fields["acked"]), refused)
                return fields["queue"], Flow(
                    sample.at_ms, int(fields["ms"]), numbers, fields["put"], fields["wait"]
                )
            case "depth", "1":
                sizes = (int(fields[name]) for name in ("len", "leased", "dead", "oldest_ms"))
                return fields["queue"], Depth(sample.at_ms, *sizes)
    except (KeyError, ValueError):  # of a later version
        return None
    return None


@dataclass(slots=True)
class Series:
    """Time series of `count` steps of `step_ms` from `start_ms` on. known_ms: nothing is known before this time."""

    start_ms: int
    step_ms: int
    count: int
    known_ms: int
    _flows: list[list[float]] = field(init=False)
    _put: dict[int, list[float]] = field(init=False, default_factory=dict)
    _wait: dict[int, list[float]] = field(init=False, default_factory=dict)
    _depths: list[Depth] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self._flows = [[0.0] * self.count for _ in FLOWS]

    def add(self, kept: Iterable[Kept]) -> None:
        """Add samples."""
        for each in kept:
            if isinstance(each, Depth):
                self._depths.append(each)
            else:
                self._add(each)

    def _add(self, flow: Flow) -> None:
        for at, share in shares(flow, self.start_ms, self.step_ms):
            if not 0 <= at < self.count:
                continue
            for numbers, number in zip(self._flows, flow.numbers, strict=True):
                numbers[at] += number * share
            _add_classes(self._put, at, flow.put, share)
            _add_classes(self._wait, at, flow.wait, share)

    def values(self) -> dict[str, list[Any]]:
        """Return the values of each step, by name."""
        seconds = self.step_ms / 1000
        series: dict[str, list[Any]] = dict(self._sizes())
        for name, numbers in zip(FLOWS, self._flows, strict=True):
            series[name] = [
                round(number / seconds, 3) if self._is_known(at) else None
                for at, number in enumerate(numbers)
            ]
        for name, classes, bounds in (("put", self._put, PUT_S), ("wait", self._wait, WAIT_S)):
            for text, share in QUANTILES.items():
                series[f"{name}P{text}Ms"] = [
                    quantile_ms(classes[at], bounds, share) if at in classes else None
                    for at in range(self.count)
                ]
        return series

    def _is_known(self, at: int) -> bool:
        return self.start_ms + at * self.step_ms >= self.known_ms

    def _sizes(self) -> dict[str, list[int | None]]:
        """Return the last sizes before the end of each step."""
        self._depths.sort(key=lambda depth: depth.at_ms)
        times = [depth.at_ms for depth in self._depths]
        found: list[Depth | None] = []
        for at in range(self.count):
            end = self.start_ms + (at + 1) * self.step_ms
            last = bisect_right(times, end) - 1
            is_fresh = last >= 0 and end - times[last] <= DEPTH_LASTS_MS
            found.append(self._depths[last] if is_fresh else None)
        return {
            name: [None if depth is None else getattr(depth, of) for depth in found]
            for name, of in SIZES.items()
        }


def _add_classes(into: dict[int, list[float]], at: int, text: str, share: float) -> None:
    counts = [int(each) for each in text.split(",")]
    if len(counts) != CLASSES or not any(counts):
        return
    there = into.setdefault(at, [0.0] * CLASSES)
    for index, count in enumerate(counts):
        if count:
            there[index] += count * share


def quantile_ms(counts: Sequence[float], bounds: Sequence[float], share: float) -> float | None:
    """Interpolate a quantile linearly within its class; values above the last bound count as that bound."""
    wanted = sum(counts) * share
    if not wanted:
        return None
    passed = 0.0
    for index, count in enumerate(counts):
        if count and passed + count >= wanted - 1e-9:
            if index == len(bounds):
                break
            low = bounds[index - 1] if index else 0.0
            inside = (wanted - passed) / count
            return _rounded((low + (bounds[index] - low) * inside) * 1000)
        passed += count
    return _rounded(bounds[-1] * 1000)


def _rounded(ms: float) -> float:
    """Round to three significant digits."""
    return round(ms, 2 - math.floor(math.log10(ms))) if ms > 0 else 0.0
