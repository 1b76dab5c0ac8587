"""Measure RQP/MCA: RELIABLE messages on one connection beside a raw XADD, and the rate from edge to edge.

On a single connection, one store call and its fsync serve only one window or one message. Edge to edge, each message is
taken, sent, stored, confirmed and settled.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from benchmarks.generator import Outcome
from benchmarks.measures.bench import Bench
from benchmarks.measures.edges import own_store
from benchmarks.peers.peer import BODY, Operation, Shape, WirePeer
from benchmarks.peers.redis import RawXadd, RedisBenchmark, Store
from benchmarks.peers.rqp import WINDOW, Rqp, declare, fill
from benchmarks.peers.tmq import init_store
from benchmarks.plan import warm_up
from benchmarks.process import NotRun
from benchmarks.results import Finding, Target

IN_FLIGHT, ONE = Shape(1, 200), Shape(1, 1)
THEIRS, OURS = "raw XADD (redis-benchmark)", "raw XADD (this generator)"
OF_RAW = Target(">=", 1.0)
OF_A_ROUND_TRIP = Target(">=", 0.5)
CARRIED = Target(">=", 5_000.0)
ROUND_TRIP_S = 1.0  # how long a client that waits for each answer is timed
ARRIVAL_TIMEOUT_S = 60.0
POLL_S = 0.005
NUMBER = 7  # id of the destination queue
AWAY, ARRIVED = "away", "arrived"  # queues: at the sender, and at the receiver


def measure(bench: Bench) -> list[Finding]:
    return [*_one_connection(bench), _carried(bench)]


# one connection


def _one_connection(bench: Bench) -> list[Finding]:
    try:
        with own_store(bench, "rqp") as store, _edge(bench, store, "penstock-rqp") as edge:
            raw, theirs = RawXadd(bench.workshop, store), RedisBenchmark(bench.workshop, store)
            raw.start()
            theirs.start()
            peers = (edge, raw, theirs)
            rounds = [_round(bench, peers, number) for number in range(bench.plan.rounds + 1)][1:]
    except OSError as failure:
        return [Finding("rqp", _what(IN_FLIGHT, THEIRS), unit="x", target=OF_RAW, note=str(failure))]
    return _findings(rounds)


@contextlib.contextmanager
def _edge(bench: Bench, store: Store, name: str, peer: int | None = None) -> Iterator[Rqp]:
    edge = Rqp(bench.workshop, store, name, peer)
    edge.start()
    try:
        yield edge
    finally:
        edge.stop()


Rates = dict[str, float]  # messages/s, by what was measured


def _round(bench: Bench, peers: tuple[Rqp, RawXadd, RedisBenchmark], number: int) -> Rates:
    """Run one round; the rounds begin with the measures by turns."""
    edge, raw, theirs = peers
    bench.say("rqp: one connection")
    rates: Rates = {}
    works: list[Callable[[], Rates]] = [
        lambda: {f"mca {shape.name}": _put(bench, edge, shape, number).rate for shape in (IN_FLIGHT, ONE)},
        lambda: {f"xadd {shape.name}": _put(bench, raw, shape, number).rate for shape in (IN_FLIGHT, ONE)},
        lambda: {"redis-benchmark": _benchmark(bench, theirs, number)},
        lambda: {"client": _round_trips(raw.store)},
    ]
    first = number % len(works)
    for work in works[first:] + works[:first]:
        rates |= work()
    return rates


def _put(bench: Bench, peer: WirePeer, shape: Shape, number: int) -> Outcome:
    bound = bench.plan.rqp
    queue = peer.next_queue()
    peer.create(queue)
    try:
        return peer.put(bench.generator, shape, bound if number else warm_up(bound), queue)
    finally:
        peer.delete(queue)


def _benchmark(bench: Bench, theirs: RedisBenchmark, number: int) -> float:
    bound = bench.plan.rqp
    outcomes = theirs.measure(bench.generator, IN_FLIGHT, bound if number else warm_up(bound))
    return outcomes[Operation.PUT].rate


def _round_trips(store: Store) -> float:
    """Return the XADDs a second of a program that waits for each, with the usual client library."""
    end = time.perf_counter() + ROUND_TRIP_S
    began, count = time.perf_counter(), 0
    with store.connect() as redis:
        while (now := time.perf_counter()) < end:
            redis.xadd("client", {"b": BODY})
            count += 1
    store.drop("client")
    return count / (now - began)


def _what(shape: Shape, beside: str) -> str:
    return f"put {shape.name} / {beside}"


def _findings(rounds: list[Rates]) -> list[Finding]:
    def ratio(ours: str, theirs: str) -> list[float]:
        return [rates[ours] / rates[theirs] for rates in rounds]

    one, many = f"mca {ONE.name}", f"mca {IN_FLIGHT.name}"
    return [
        Finding("rqp", _what(IN_FLIGHT, THEIRS), ratio(many, "redis-benchmark"), "x", OF_RAW),
        Finding("rqp", _what(IN_FLIGHT, OURS), ratio(many, f"xadd {IN_FLIGHT.name}"), "x"),
        Finding("rqp", _what(ONE, "one XADD of redis-py"), ratio(one, "client"), "x", OF_A_ROUND_TRIP),
        Finding("rqp", _what(ONE, OURS), ratio(one, f"xadd {ONE.name}"), "x"),
        Finding("rqp", f"put {IN_FLIGHT.name}", [rates[many] for rates in rounds], "msg/s"),
        Finding("rqp", f"put {ONE.name}", [rates[one] for rates in rounds], "msg/s"),
    ]


# from edge to edge


def _carried(bench: Bench) -> Finding:
    what = f"edge to edge, two stores, one connection, window {WINDOW}"
    try:
        with own_store(bench, "rqp-far") as far, own_store(bench, "rqp-near") as near:
            values = _carry_all(bench, near, far)
    except OSError as failure:
        return Finding("rqp", what, unit="msg/s", target=CARRIED, note=str(failure))
    return Finding("rqp", what, values, "msg/s", CARRIED)


def _carry_all(bench: Bench, near: Store, far: Store) -> list[float]:
    """Return the rate of each round: the sending edge starts with a full queue; its startup does not count."""
    init_store(near, bench.workshop.subfolder("rqp-near"))
    declare(near, {AWAY: {"remote": {"protocol": "rqp-mca", "queueId": NUMBER}}})
    with _edge(bench, far, "penstock-rqp-far") as there:
        rounds = range(bench.plan.rounds + 1)
        return [_carry(bench, near, far, there.port, number) for number in rounds][1:]


def _carry(bench: Bench, near: Store, far: Store, port: int, number: int) -> float:
    """Return the messages a second. The destination queue is closed until the sender is ready."""
    bench.say("rqp: edge to edge")
    count = bench.plan.rqp_carried
    fill(near, AWAY, [BODY] * count)
    _open(far, is_open=False)
    with _edge(bench, near, f"penstock-rqp-near{number}", port), ThreadPoolExecutor(1) as threads:
        # its first poll is before any arrival
        arrivals = threads.submit(_arrivals, far, count * number, count)
        _open(far, is_open=True)
        return arrivals.result()


def _open(far: Store, *, is_open: bool) -> None:
    declare(far, {ARRIVED: {"bindings": {"rqpMca": {"queueId": NUMBER}}, "paused": not is_open}})


def _arrivals(far: Store, before: int, count: int) -> float:
    """Return the seconds from the last poll without arrivals to the first poll with all. Raises NotRun."""
    deadline = time.monotonic() + ARRIVAL_TIMEOUT_S
    began = time.perf_counter()
    with far.connect() as redis:
        (key,) = redis.scan_iter("ps:{main}:*:q")
        while (found := int(redis.hget(key, "len") or 0)) < before + count:
            if found == before:
                began = time.perf_counter()
            if time.monotonic() > deadline:
                raise NotRun(f"{found - before:,} of {count:,} messages came in {ARRIVAL_TIMEOUT_S:.0f} s")
            time.sleep(POLL_S)
    return count / (time.perf_counter() - began)
