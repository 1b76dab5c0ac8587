"""Compare a run's JSON results with the targets of the job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.parts import Found
from benchmarks.results import Finding, Target, median

RATE = Target(">=", 100_000)  # records/s, the whole job on two cores
MEMORY = Target("<=", 4096)  # MiB
READING = Target(">=", 0.5)  # of the plain loop, a core
SCALING = Target(">=", 1.6)  # from one core to two
EDGE = Target(">=", 0.9)  # of the rate without a run
ONE, TWO = "local[1]", "local[2]"


def findings(found: Found) -> list[Finding]:
    """Return the findings of the parts that were run, in order."""
    parts = {"reading": _reading, "job": _job, "edge": _edge}
    return [each for name, part in parts.items() if name in found for each in part(found[name])]


def _reading(found: Found) -> Iterator[Finding]:
    for kind, each in found.items():
        ratios = _quotients(each["one core"], each["loop"])
        yield Finding(
            "reading", f"{kind} read by Spark on one core / plain XRANGE loop", ratios, "x", READING
        )
        more = _quotients(each["two cores"], each["one core"])
        yield Finding("reading", f"{kind} read by Spark, two cores / one", more, "x", SCALING)


def _job(found: dict[str, list[Found]]) -> Iterator[Finding]:
    rates = {master: rates_of(runs) for master, runs in found.items()}
    peak = max(each["peak_mib"] for runs in found.values() for each in runs)
    yield Finding("job", "the whole job on two cores, after Spark's start", rates[TWO], "records/s", RATE)
    yield Finding("job", "its memory at most, all processes", [peak], "MiB", MEMORY)
    yield Finding("job", "two cores / one", _quotients(rates[TWO], rates[ONE]), "x", SCALING)


def rates_of(runs: Sequence[Found]) -> list[float]:
    """Return the records a second of each run."""
    return [(each["dead"] + each["samples"]) / each["seconds"] for each in runs]


def _edge(found: dict[str, Found]) -> Iterator[Finding]:
    for name, each in found.items():
        for what, field in (("as fast as it can", "both"), ("at a fixed pace", "paced")):
            values = [] if "note" in each else [ratio(each, field)]
            text = f"an edge {what} beside the job, {name} / without"
            yield Finding("edge", text, values, "x", EDGE, each.get("note", ""))


def ratio(seen: Found, field: str) -> float:
    """Return the ratio of the medians with the job and without it."""
    with_it, without = middles(seen, field)
    return with_it / without if without else 0.0


def middles(seen: Found, field: str) -> tuple[float, float]:
    """Return the medians during the job and without it."""
    during, without = (median(look[field] for look in seen[name]) for name in ("during", "without"))
    return during, without


def _quotients(of: Sequence[float], to: Sequence[float]) -> list[float]:
    return [a / b for a, b in zip(of, to, strict=True)]
