"""Measure put and take, in flight and one at a time: all peers in every round, each round starting with another."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.measures.bench import Bench
from benchmarks.peers.peer import IN_FLIGHT, ONE_AT_A_TIME, SHAPES, Operation, Peer, Shape
from benchmarks.plan import warm_up
from benchmarks.results import Cell, Finding, PeerResult, Results, Target, ratios

PUT, TAKE = Operation.PUT, Operation.TAKE
# A cell of a Penstock edge, the peer's cell for comparison, and the least ratio; None for information.
# JetStream's fetch of many messages is its take in flight.
TARGETS = (
    ("tmq", PUT, IN_FLIGHT, "redis-benchmark", PUT, 1.2),
    ("tmq", PUT, IN_FLIGHT, "nats", PUT, 2.0),
    ("tmq", PUT, IN_FLIGHT, "rabbitmq", PUT, 6.0),
    ("tmq", PUT, ONE_AT_A_TIME, "redis-benchmark", PUT, 0.7),
    ("tmq", PUT, ONE_AT_A_TIME, "nats", PUT, 0.8),
    ("tmq", PUT, ONE_AT_A_TIME, "nats-always", PUT, 5.0),
    ("tmq", TAKE, IN_FLIGHT, "nats", TAKE, 1.0),
    ("tmq", TAKE, ONE_AT_A_TIME, "redis-benchmark", PUT, 0.5),
    ("ring", PUT, IN_FLIGHT, "redis-benchmark", PUT, 0.5),
    ("ring", TAKE, IN_FLIGHT, "redis-benchmark", PUT, 0.5),
    ("ring", PUT, ONE_AT_A_TIME, "redis-benchmark", PUT, None),
    ("ring", TAKE, ONE_AT_A_TIME, "redis-benchmark", PUT, None),
    ("text", PUT, IN_FLIGHT, "redis-benchmark", PUT, 1.0),
    ("text", PUT, IN_FLIGHT, "nats", PUT, 2.0),
    ("text", PUT, ONE_AT_A_TIME, "redis-benchmark", PUT, None),
    ("text", PUT, ONE_AT_A_TIME, "nats", PUT, None),
)


def cell_name(operation: Operation, shape: Shape) -> str:
    return f"{operation.value} {shape.name}"


def measure(bench: Bench) -> list[Finding]:
    """Fill in the peers of the results; return the ratios that have targets."""
    bench.results.peers = [_begin(bench, peer) for peer in bench.peers.values()]
    for number in range(bench.plan.rounds + 1):
        for peer in _in_turn(bench, number):
            _one_round(bench, peer, number)
    return compare(bench.results)


def _begin(bench: Bench, peer: Peer) -> PeerResult:
    reason = bench.start(peer.name)
    version = "" if reason else peer.version()
    return PeerResult(peer.name, peer.title, peer.promise, version, reason)


def _in_turn(bench: Bench, number: int) -> Iterator[PeerResult]:
    peers = bench.results.peers
    first = number % len(peers)
    return (peer for peer in peers[first:] + peers[:first] if not peer.not_run)


def _one_round(bench: Bench, result: PeerResult, number: int) -> None:
    """Run one round of a peer; round 0 is the warm-up. A failed peer is skipped, with its reason in the table."""
    peer = bench.peers[result.name]
    for shape in SHAPES:
        bench.say(f"{'warm-up' if number == 0 else f'round {number}'}: {peer.title}, {shape.name}")
        bound = bench.plan.put[shape]
        try:
            outcomes = peer.measure(bench.generator, shape, bound if number else warm_up(bound))
        except OSError as failure:
            result.not_run = f"failed: {failure}"
            result.cells = {}
            return
        if number:
            for operation, outcome in outcomes.items():
                result.cells.setdefault(cell_name(operation, shape), Cell()).add(outcome)


def compare(results: Results) -> list[Finding]:
    """Return the ratios that have targets, if both sides were measured."""
    found = []
    for edge, operation, shape, name, of, wanted in TARGETS:
        ours, theirs = results.peer(edge), results.peer(name)
        if ours and theirs:
            found.append(_ratio(ours, theirs, cell_name(operation, shape), cell_name(of, shape), wanted))
    return found


def _ratio(ours: PeerResult, theirs: PeerResult, mine: str, other: str, wanted: float | None) -> Finding:
    whose = "" if ours.name == "tmq" else f"{ours.name} "
    what = f"{whose}{mine} / {theirs.title}" + ("" if other == mine else f" {other.partition(' ')[0]}")
    values = ratios(ours.cells.get(mine), theirs.cells.get(other))
    not_run = next((f"{peer.title}: {peer.not_run}" for peer in (ours, theirs) if peer.not_run), "")
    return Finding("throughput", what, values, "x", Target(">=", wanted) if wanted else None, not_run)
