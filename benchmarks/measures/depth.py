"""Check that a message's cost does not depend on the queue's depth: puts and takes in pairs, at several depths.

There is one queue for each depth, all filled first; then every round visits all of them, so that the depths are
compared within the same minute. The cost is CPU time, which other programs disturb less than elapsed time.
"""

from __future__ import annotations

import contextlib

from benchmarks.generator import Bound, LoadFailed
from benchmarks.machine import cpu_s
from benchmarks.measures.bench import Bench
from benchmarks.peers.peer import IN_FLIGHT
from benchmarks.peers.redis import Store
from benchmarks.peers.tmq import Tmq
from benchmarks.plan import DEPTH_LOAD, DEPTH_PAIRS
from benchmarks.results import Finding, Target, median

# The cost at a depth / the cost at the first one: above 1, as caches and repeats change even a constant cost.
FLAT = Target("<=", 1.25)
ROUND_LIMIT_S = 60.0
STORE, EDGE = "penstock-depth-store", "penstock-depth"


def measure(bench: Bench) -> list[Finding]:
    """Measure on a separate store and edge, which hold no other data in memory."""
    depths = bench.plan.depths
    store = Store(bench.workshop, bench.store.program, STORE)
    edge = Tmq(bench.workshop, store, EDGE)
    try:
        edge.start()
        queues = {depth: _fill(bench, edge, depth) for depth in depths}
        memory = _memory_per_message(store, sum(depths))
        rounds = [_round(bench, edge, queues) for _ in range(bench.plan.rounds + 1)][1:]  # one to warm up
    except OSError as failure:
        return [Finding("depth", _what(depths[0], depths[-1]), unit="x", target=FLAT, note=str(failure))]
    return [
        *_findings(rounds, depths),
        Finding("depth", "memory of the store per message", [memory], "bytes"),
    ]


def _what(first: int, depth: int) -> str:
    return f"CPU per put or take (store + edge) with {depth:,} in the queue / with {first:,}"


def _fill(bench: Bench, edge: Tmq, depth: int) -> str:
    bench.say(f"depth: filling a queue with {depth:,} messages")
    queue = f"depth{depth}"
    edge.create(queue)
    outcome = edge.put(bench.generator, IN_FLIGHT, Bound(depth, ROUND_LIMIT_S), queue)
    if outcome.messages < depth:
        raise LoadFailed(f"only {outcome.messages:,} of {depth:,} messages were put in {ROUND_LIMIT_S:.0f} s")
    return queue


def _memory_per_message(store: Store, messages: int) -> float:
    return round(store.info("used_memory_dataset") / messages, 1)


Costs = dict[int, dict[str, float]]  # depth -> us per message: elapsed, the store's CPU, the edge's CPU


def _round(bench: Bench, edge: Tmq, queues: dict[int, str]) -> Costs:
    return {depth: _cost(bench, edge, depth, queue) for depth, queue in queues.items()}


def _cost(bench: Bench, edge: Tmq, depth: int, queue: str) -> dict[str, float]:
    bench.say(f"depth: {bench.plan.depth_messages:,} messages through a queue of {depth:,}")
    with contextlib.closing(edge.mixed_load(DEPTH_LOAD, queue, DEPTH_PAIRS)) as load:
        before = edge.store.cpu_s(), cpu_s(edge.daemon.pid)
        outcome = bench.generator.run(load, Bound(bench.plan.depth_messages, ROUND_LIMIT_S))
        after = edge.store.cpu_s(), cpu_s(edge.daemon.pid)
    each = 1e6 / max(1, outcome.messages)
    return {
        "wall": outcome.seconds * each,
        "store": (after[0] - before[0]) * each,
        "edge": (after[1] - before[1]) * each,
    }


def _findings(rounds: list[Costs], depths: tuple[int, ...]) -> list[Finding]:
    first = depths[0]

    def per(depth: int, key: str) -> list[float]:
        return [each[depth][key] for each in rounds]

    def cost(depth: int) -> list[float]:
        return [store + edge for store, edge in zip(per(depth, "store"), per(depth, "edge"), strict=True)]

    def quotients(depth: int) -> list[float]:
        return [deep / max(shallow, 1e-9) for deep, shallow in zip(cost(depth), cost(first), strict=True)]

    def cpu(depth: int) -> str:
        return f"CPU: store {median(per(depth, 'store')):.2f} us, edge {median(per(depth, 'edge')):.2f} us"

    flat = [Finding("depth", _what(first, depth), quotients(depth), "x", FLAT) for depth in depths[1:]]
    return flat + [
        Finding(
            "depth",
            f"time per put or take with {depth:,} in the queue",
            per(depth, "wall"),
            "us",
            note=cpu(depth),
        )
        for depth in depths
    ]
