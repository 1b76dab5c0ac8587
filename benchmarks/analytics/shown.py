"""Show the results as tables: on the terminal, and in docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.analytics.asking import OURS, THEIRS, crossing
from benchmarks.analytics.findings import findings, middles, rates_of, ratio
from benchmarks.analytics.profile import JVM, PYTHON, STORE
from benchmarks.machine import Machine
from benchmarks.parts import Found, Part, Parts, Row
from benchmarks.results import median

SMALL = "a small run, not to be quoted"
ASKED = (*OURS, *THEIRS)


def _reading(found: dict[str, Found]) -> Iterator[Row]:
    for kind, each in found.items():
        yield [kind, *(f"{median(each[name]):,.0f}" for name in ("loop", "one core", "two cores"))]


def _profile(found: Found) -> Iterator[Row]:
    for kind, reads in found["reads"].items():
        for cores, each in reads.items():
            busy = [each.get(whose, 0.0) for whose in (STORE, JVM, PYTHON)]
            yield [f"{kind}, {cores}", *(f"{number:.2f}" for number in (*busy, sum(busy)))]


def _loops(found: Found) -> str:
    times = [f"{each:.2f}" for each in sorted(found["loops"])]
    return f"Two processes that only compute did {', '.join(times)} times as much as one."


def _job(found: dict[str, list[Found]]) -> Iterator[Row]:
    for master, runs in sorted(found.items()):
        seconds, peak = median(each["seconds"] for each in runs), max(each["peak_mib"] for each in runs)
        yield [master, f"{median(rates_of(runs)):,.0f}", f"{seconds:.1f}", f"{peak:,.0f}"]
        for step in runs[0]["steps"]:
            yield [f"- {step}", "", f"{median(run['steps'][step] for run in runs):.1f}", ""]


def _asked(found: Found) -> Iterator[Row]:
    for each in found["sizes"]:
        yield [
            each["what"],
            f"{each['letters']:,}",
            *(f"{median(each['seconds'][name]):.2f}" for name in ASKED),
        ]


def _crossing(found: Found) -> str:
    various = found["variety"]
    return (
        f"{crossing(found['sizes'])} All four had the same rows. {various['fingerprints']:,} bodies and "
        f"{various['patterns']:,} errors are different; a queue has {various['reasons']} reasons and "
        f"{various['origins']} origins at least."
    )


def _edge(found: dict[str, Found]) -> Iterator[Row]:
    for name, each in found.items():
        if "note" in each:
            yield [name, each["note"], *[""] * 5]
            continue
        during, without = middles(each, "both")
        pace, _ = middles(each, "paced")
        waits = (
            f"{a / 1000:.2f} / {b / 1000:.2f}" for a, b in (middles(each, "p50_us"), middles(each, "p99_us"))
        )
        rates = (f"{during:,.0f} / {without:,.0f}", f"{ratio(each, 'both'):.2f}")
        name += "" if each["is_over"] else " (it was not over)"
        yield [name, *rates, f"{pace:,.0f} of {each['pace']:,.0f}", *waits]


def _pages(found: dict[str, Found]) -> str:
    told = [
        f"{each['pages_s'] / each['seconds']:.0%} ({name}; {1000 * each['pages_s'] / each['pages']:.2f} ms each)"
        for name, each in found.items()
        if each.get("pages")
    ]
    return f"XRANGEs took of the store's one thread: {', '.join(told)}." if told else ""


PARTS = {
    "reading": Part("Reading alone, records/s", ("", "loop", "Spark, one core", "two cores"), _reading),
    "profile": Part(
        "Cores at work while Spark reads", ("", STORE, JVM, PYTHON, "together"), _profile, _loops
    ),
    "job": Part(
        "The whole job, after Spark's start", ("", "records/s", "seconds", "memory at most, MiB"), _job
    ),
    "asked": Part("Table `deaths`, seconds", ("", "letters", *ASKED), _asked, _crossing),
    "edge": Part(
        "An edge beside a run, with / without it",
        ("the job", "50 x 1, msg/s", "ratio", "paced, msg/s", "p50 then, ms", "p99 then, ms"),
        _edge,
        _pages,
    ),
}


def caption(found: Found) -> str:
    filled, machine = found["fill"], Machine(**found["machine"])
    kind = f"medians of {found['rounds']}" if found["rounds"] > 1 else "one round"
    records = (
        f"{filled['letters']:,} dead letters of {filled['queues']} queues and {filled['samples']:,} samples"
    )
    return (
        f"{found['date'][:10]}, {kind if found['is_full'] else SMALL}: {records}, of {filled['hours']} hours, "
        f"{filled['store_mib']:,.0f} MiB in the store; {machine}. Commit {found['commit'] or 'unknown'}."
    )


SHOWN = Parts(PARTS, findings, caption)
