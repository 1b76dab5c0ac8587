"""The amounts to measure: the full plan, whose numbers are published, and the quick one, which is a smoke test."""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.generator import Bound
from benchmarks.peers.peer import IN_FLIGHT, ONE_AT_A_TIME, Shape

MIN_ROUNDS, MAX_ROUNDS = 1, 50


@dataclass(frozen=True, slots=True)
class Plan:
    rounds: int
    put: dict[Shape, Bound]  # throughput: each put; the take empties the queue again
    paced_seconds: float
    idle_connections: int
    depths: tuple[int, ...]  # messages in the queue
    depth_messages: int  # put and taken at each depth, a round
    store_messages: int  # the store alone, each mode and batch, a round
    fanout: Bound  # messages published to each audience, a round
    subscriptions: int  # the large table, a multiple of 10
    subscribers: int  # connections that hold them
    subscribed: Bound  # SENDs with each table, a round
    delivery_seconds: float
    rqp: Bound  # RELIABLE messages to a receiving MCA, a round
    rqp_carried: int  # messages from one edge to another, a round
    rqp_sessions: int  # of RQP/cast, a round
    ring_trips: int  # messages around the ring, a round
    ring_lone_trips: int  # one at a time, a round
    quick: bool = False

    def with_rounds(self, rounds: int | None) -> Plan:
        return self if rounds is None else replace(self, rounds=rounds)


FULL = Plan(
    rounds=5,
    put={IN_FLIGHT: Bound(300_000, 2.0), ONE_AT_A_TIME: Bound(60_000, 2.0)},
    paced_seconds=4.0,
    idle_connections=5_000,
    depths=(1_000, 10_000, 100_000, 1_000_000),
    depth_messages=100_000,
    store_messages=100_000,
    fanout=Bound(2_000_000, 1.0),
    subscriptions=100_000,
    subscribers=1_000,
    subscribed=Bound(2_000_000, 1.0),
    delivery_seconds=5.0,  # after the first round the log is longer than the part that edges hold in memory
    rqp=Bound(200_000, 2.0),
    rqp_carried=30_000,
    rqp_sessions=4_000,
    ring_trips=20_000,
    ring_lone_trips=500,
)
QUICK = Plan(
    rounds=2,
    put={IN_FLIGHT: Bound(60_000, 0.6), ONE_AT_A_TIME: Bound(12_000, 0.6)},
    paced_seconds=1.0,
    idle_connections=5_000,
    depths=(1_000, 10_000, 100_000),
    depth_messages=20_000,
    store_messages=20_000,
    fanout=Bound(500_000, 0.3),
    subscriptions=100_000,
    subscribers=1_000,
    subscribed=Bound(2_000_000, 0.4),
    delivery_seconds=0.5,
    rqp=Bound(40_000, 0.6),
    rqp_carried=10_000,
    rqp_sessions=1_200,
    ring_trips=4_000,
    ring_lone_trips=100,
    quick=True,
)
WARM_UP = 4  # the warm-up round, which is dropped, has this part of the messages
PACED = Shape(50, 1)
PACED_RATE = 5_000.0  # messages/s
DEPTH_LOAD = Shape(10, 80)  # messages in flight on a connection, puts and takes together
DEPTH_PAIRS = 20  # puts, then as many takes, in one request


def warm_up(bound: Bound) -> Bound:
    return Bound(max(1, bound.count // WARM_UP), bound.seconds / WARM_UP, bound.rate)
