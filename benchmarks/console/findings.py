"""Compare a run's JSON results with the targets of the console."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.parts import Found
from benchmarks.results import Finding, Target

ANSWER = Target("<=", 50)  # ms, p99 of each route
CORE = Target("<=", 0.05)  # share of a core while a thousand queues are watched
WEIGHT = Target("<=", 200)  # kB of a first visit
SOON = Target("<=", 1000)  # ms from the request to the list of a thousand queues
UNHURT = Target(">=", 0.98)  # of an edge's throughput, while a console is watched and metrics are scraped
BESIDE = {"one": "one question at a time", "four": "four at a time"}


def findings(found: Found) -> list[Finding]:
    """Return the findings of the parts that were run, in order."""
    parts = {"routes": _routes, "cold": _cold, "walk": _walk}
    parts |= {"watched": _watched, "page": _page, "beside": _beside}
    return [each for name, part in parts.items() if name in found for each in part(found[name])]


def _routes(found: Found) -> Iterator[Finding]:
    for beside, words in BESIDE.items():
        slowest = max(found, key=lambda kind: found[kind][beside]["p99"])
        value = found[slowest][beside]["p99"]
        yield Finding("routes", f"p99 of the slowest route, {words}", [value], "ms", ANSWER, f"({slowest})")


def _cold(found: Found) -> Iterator[Finding]:
    slowest = max(found, key=lambda kind: found[kind]["most"])
    what = "the slowest first question after a silence"
    yield Finding("cold", what, [found[slowest]["most"]], "ms", ANSWER, f"({slowest})")


def _walk(found: Found) -> Iterator[Finding]:
    what = "p99 of the pages of a filtered list that finds nothing"
    yield Finding("walk", what, [found["p99_ms"]], "ms", ANSWER)


def _watched(found: Found) -> Iterator[Finding]:
    for name, each in found.items():
        yield Finding("watched", f"live view, {name}", [each["share"]], "of a core", CORE)


def _page(found: Found) -> Iterator[Finding]:
    yield Finding("page", "a first visit of the page", [found["octets"] / 1000], "kB", WEIGHT)
    if plotted := found.get("with the first plot"):  # results before 2026-11-26 lack it
        yield Finding("page", "the same with the first plot", [plotted / 1000], "kB", WEIGHT)
    yield Finding("page", "until it shows a thousand queues", [found["list there"]], "ms", SOON)


def _beside(found: Found) -> Iterator[Finding]:
    what = "an edge's throughput while a console is watched and metrics of queues are scraped"
    noise = found["alone, again"]["share"]
    share = found["looked at"]["share"]
    yield Finding("beside", what, [share], "x alone", UNHURT, f"(one more alone: {noise:.3f})")
