"""Measure the latency of a message below full load: ENQ beside a raw XADD, both at the same pace.

Open loop: each message has a due time that does not depend on earlier answers; its latency is counted from then.
"""

from __future__ import annotations

from benchmarks.generator import Bound, Outcome
from benchmarks.measures.bench import Bench
from benchmarks.peers.peer import WirePeer
from benchmarks.plan import PACED, PACED_RATE, warm_up
from benchmarks.results import Finding, Target

WANTED = Target("<=", 3.0)
NAMES = ("tmq", "xadd")


def measure(bench: Bench) -> list[Finding]:
    for name in NAMES:
        if name not in bench.peers:
            return [_missing(f"{name} was left out")]
        if reason := bench.start(name):
            return [_missing(reason)]
    seconds = bench.plan.paced_seconds
    bound = Bound(int(PACED_RATE * seconds), seconds * 2, PACED_RATE)
    rounds = [
        _round(bench, bound if number else warm_up(bound), number) for number in range(bench.plan.rounds + 1)
    ]
    return _findings(rounds[1:])


def _missing(reason: str) -> Finding:
    return Finding("paced", _what("/ raw XADD"), unit="x", target=WANTED, note=reason)


def _what(rest: str) -> str:
    return f"p99 of one ENQ at {PACED_RATE:,.0f} msg/s {rest}".rstrip()


def _round(bench: Bench, bound: Bound, number: int) -> dict[str, Outcome]:
    order = NAMES if number % 2 else NAMES[::-1]
    return {name: _one(bench, name, bound) for name in order}


def _one(bench: Bench, name: str, bound: Bound) -> Outcome:
    peer = bench.peers[name]
    assert isinstance(peer, WirePeer)
    bench.say(f"paced: {peer.title}")
    queue = peer.next_queue()
    peer.create(queue)
    try:
        return peer.put(bench.generator, PACED, bound, queue)
    finally:
        peer.delete(queue)


def _findings(rounds: list[dict[str, Outcome]]) -> list[Finding]:
    def of(name: str, field: str) -> list[float]:
        return [getattr(each[name], field) for each in rounds]

    quotients = [each["tmq"].p99_us / each["xadd"].p99_us for each in rounds]
    return [
        Finding("paced", _what("/ raw XADD"), quotients, "x", WANTED),
        Finding("paced", _what(""), of("tmq", "p99_us"), "us", note=_rate(rounds, "tmq")),
        Finding(
            "paced",
            "p99 of a raw XADD paced the same",
            of("xadd", "p99_us"),
            "us",
            note=_rate(rounds, "xadd"),
        ),
        Finding("paced", "median of one ENQ paced", of("tmq", "p50_us"), "us"),
        Finding("paced", "median of a raw XADD paced the same", of("xadd", "p50_us"), "us"),
    ]


def _rate(rounds: list[dict[str, Outcome]], name: str) -> str:
    slowest = min(each[name].rate for each in rounds)
    return "" if slowest > 0.98 * PACED_RATE else f"the pace was not kept: {slowest:,.0f} msg/s"
