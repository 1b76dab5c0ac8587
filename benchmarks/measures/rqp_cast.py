"""Measure RQP/cast: complete sessions between two edges with a store each, for several keys in parallel.

A session carries one message: the question over UDP, and the answer, the approval, the data and the confirmation, each
on a connection of its own. Sessions of one key are sequential (rqp_cast.md 4.4), and each waits for two disks: the
sender records the message's owner, and the receiver reserves, stores and frees.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from redis import Redis

from benchmarks.measures.bench import Bench
from benchmarks.measures.edges import own_store
from benchmarks.peers.peer import BODY
from benchmarks.peers.redis import Store
from benchmarks.peers.rqp import declare, fill
from benchmarks.peers.rqp_cast import HERE, THERE, Numbers, cast_agent
from benchmarks.peers.tmq import init_store
from benchmarks.plan import Plan
from benchmarks.process import NotRun
from benchmarks.results import Finding, Target

KEYS = range(1, 9)
WANTED = Target(">=", 300.0)
ARRIVAL_TIMEOUT_S = 60.0
POLL_S = 0.005
WHAT = f"whole sessions, two stores, {len(KEYS)} keys"


def measure(bench: Bench) -> list[Finding]:
    try:
        with own_store(bench, "cast-far") as far, own_store(bench, "cast-near") as near:
            values = _carry_all(bench, near, far)
    except OSError as failure:
        return [Finding("rqp cast", WHAT, unit="sessions/s", target=WANTED, note=str(failure))]
    return [Finding("rqp cast", WHAT, values, "sessions/s", WANTED)]


def _carry_all(bench: Bench, near: Store, far: Store) -> list[float]:
    """Return the rate of each round: the sending edge starts with full queues; its startup does not count."""
    for store, name in ((near, "cast-near"), (far, "cast-far")):
        init_store(store, bench.workshop.subfolder(name))
    declare(near, {f"away {key}": {"remote": {"protocol": "rqp-cast", "key": key}} for key in KEYS})
    declare(far, {f"arrived {key}": {"bindings": {"rqpCast": {"key": key}}} for key in KEYS})
    numbers = Numbers.free()
    with cast_agent(bench.workshop, "cast-far", far, THERE, numbers):
        rounds = range(bench.plan.rounds + 1)
        return [_carry(bench, near, far, numbers, number) for number in rounds][1:]


def _carry(bench: Bench, near: Store, far: Store, numbers: Numbers, number: int) -> float:
    """Return the sessions a second, from the end of the first to the end of the last."""
    bench.say("rqp: whole sessions")
    count = _of_each(bench.plan)
    for key in KEYS:
        fill(near, f"away {key}", [BODY] * count)
    count *= len(KEYS)
    there = count * number  # from the rounds before
    name = f"cast-near{number}"
    with far.connect() as redis, cast_agent(bench.workshop, name, near, HERE, numbers, THERE):
        queues = list(redis.scan_iter("ps:{main}:*:q"))
        first = _wait(redis, queues, there + 1)
        began = time.perf_counter()
        _wait(redis, queues, there + count)
        return (there + count - first) / (time.perf_counter() - began)


def _of_each(plan: Plan) -> int:
    return plan.rqp_sessions // len(KEYS)


def _wait(redis: Redis, queues: Sequence[bytes], messages: int) -> int:
    """Wait until the queues hold at least `messages` messages; return their number. Raises NotRun."""
    deadline = time.monotonic() + ARRIVAL_TIMEOUT_S
    while (found := _standing(redis, queues)) < messages:
        if time.monotonic() > deadline:
            raise NotRun(f"{found:,} of {messages:,} messages came in {ARRIVAL_TIMEOUT_S:.0f} s")
        time.sleep(POLL_S)
    return found


def _standing(redis: Redis, queues: Sequence[bytes]) -> int:
    with redis.pipeline(transaction=False) as pipeline:
        for queue in queues:
            pipeline.hget(queue, "len")
        return sum(int(found or 0) for found in pipeline.execute())
