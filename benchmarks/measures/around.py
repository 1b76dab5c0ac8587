"""Measure the ring, eight node processes of one machine on one store: time to close and heal, and message rate.

A push for a queue that no node serves is a USER message that passes all nodes and returns to the sender. Each hop is
stored before it is answered: the shared store writes and syncs every message eight times.
"""

from __future__ import annotations

import math

from benchmarks.measures.bench import Bench
from benchmarks.measures.edges import own_store
from benchmarks.peers.redis import Store
from benchmarks.peers.ring_nodes import NODES, WINDOW, RingNode, Trips, kill, nodes, until_closed
from benchmarks.peers.tmq import init_store
from benchmarks.results import Finding, Target

AHEAD = 512  # the client's pushes in flight: more than the windows of two links
CLOSED = ("closed after the last node's start", "s", Target("<=", 5.0))
HEALED = ("healed after `kill -9` of a node", "s", Target("<=", 5.0))
AROUND = (f"USER around {NODES} nodes, window {WINDOW}", "msg/s", Target(">=", 2_000.0))
TRIP = ("one trip at a time, p99", "ms", Target("<=", 20.0))
TRIP_HALF = ("one trip at a time, p50", "ms", None)
WHAT = (CLOSED, HEALED, AROUND, TRIP, TRIP_HALF)


def measure(bench: Bench) -> list[Finding]:
    try:
        with own_store(bench, "ring") as store:
            init_store(store, bench.workshop.subfolder("ring"))
            rounds = [_round(bench, store, number) for number in range(bench.plan.rounds)]
    except OSError as failure:
        return [
            Finding("around", what, unit=unit, target=target, note=str(failure))
            for what, unit, target in WHAT
        ]
    return [
        Finding("around", what, [values[what] for values in rounds], unit, target)
        for what, unit, target in WHAT
    ]


def _round(bench: Bench, store: Store, number: int) -> dict[str, float]:
    bench.say("ring: eight nodes")
    with nodes(bench.workshop, store, f"ring{number}") as running:
        found = {CLOSED[0]: until_closed(running) - running[-1].has_begun}
        found |= _around(bench, running[0])
        killed = running.pop(number % (NODES - 1) + 1)  # any node but the client's
        killed_at = kill(killed)
        try:
            return found | {HEALED[0]: until_closed(running) - killed_at}
        finally:
            running.append(killed)


def _around(bench: Bench, node: RingNode) -> dict[str, float]:
    count, lone = bench.plan.ring_trips, bench.plan.ring_lone_trips
    with Trips(node.clients_port) as trips:
        trips.go(max(1, count // 4), AHEAD)  # not counted
        rate = count / trips.go(count, AHEAD)
        times = sorted(trips.go(1, 1) * 1000 for _ in range(lone))
    return {AROUND[0]: rate, TRIP[0]: times[math.ceil(0.99 * lone) - 1], TRIP_HALF[0]: times[lone // 2]}
