"""Show the results as tables: on the terminal, and in docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.console.findings import findings
from benchmarks.machine import Machine
from benchmarks.parts import Found, Part, Parts, Row

SMALL = "a small run, not to be quoted"


def _routes(found: dict[str, Found]) -> Iterator[Row]:
    for kind, result in found.items():
        one, four = result["one"], result["four"]
        times = (one["p50"], one["p99"], four["p50"], four["p99"])
        yield [kind, *(f"{each:.1f}" for each in times), f"{one['octets']:,}"]


def _cold(found: dict[str, Found]) -> Iterator[Row]:
    for name, result in found.items():
        yield [name, f"{result['p50']:.1f}", f"{result['most']:.1f}"]


def _walk(found: Found) -> Iterator[Row]:
    for name, pings in found["pings"].items():
        yield [name, *(f"{pings[each]:.2f}" for each in ("p50", "p99", "most"))]


def _walked(found: Found) -> str:
    return (
        f"It took {found['seconds']:.1f} s and {found['pages']:,} pages: p50 {found['p50_ms']:.0f} ms, p99 "
        f"{found['p99_ms']:.0f}, the longest {found['most_ms']:.0f}."
    )


def _watched(found: dict[str, Found]) -> Iterator[Row]:
    for name, result in found.items():
        octets = result["octets_per_s"] / 1024
        yield [
            name,
            f"{result['share']:.1%}",
            f"{result['rows_per_s']:,.0f}",
            f"{octets:,.0f}",
            f"{result['resident_mib']:.0f}",
        ]


def _page(found: Found) -> Iterator[Row]:
    yield from ([name, f"{value:,}"] for name, value in found.items())


def _beside(found: dict[str, Found]) -> Iterator[Row]:
    for name, result in found.items():
        yield [name, f"{result['rate']:,.0f}", f"{result['share']:.3f}"]


PARTS = {
    "routes": Part(
        "Answers of the API, ms",
        ("", "p50", "p99", "four at a time: p50", "p99", "octets of an answer"),
        _routes,
    ),
    "cold": Part("The first question after a silence, ms", ("", "p50", "most"), _cold),
    "walk": Part(
        "All dead letters looked through by a filter that none fits: a PING of the store, ms",
        ("", "p50", "p99", "most"),
        _walk,
        _walked,
    ),
    "watched": Part(
        "The live view", ("", "of a core", "rows/s", "KiB/s", "memory of the console, MiB"), _watched
    ),
    "page": Part("The page: octets, ms, a share of its thread", ("", "median"), _page),
    "beside": Part(
        "An edge, alone and looked at by a console and scrapes", ("", "messages/s", "of alone"), _beside
    ),
}


def caption(found: Found) -> str:
    filled, kind = found["fill"], "" if found["is_full"] else f" {SMALL},"
    return (
        f"{found['date'][:10]},{kind} {filled['queues']:,} queues and {filled['dead']:,} dead letters of one of them, "
        f"{filled['store_mib']:,.0f} MiB in the store, {found['asked']} questions of each kind; "
        f"{Machine(**found['machine'])}. Commit {found['commit'] or 'unknown'}."
    )


SHOWN = Parts(PARTS, findings, caption)
