"""Measure deliveries a second of one publisher to a hundred subscribers or one, beside NATS without JetStream.

One connection publishes as fast as permitted; all deliveries are counted, and the time is from the first publish to the
last subscriber's last message. On both sides the publisher is at most AHEAD messages ahead of the slowest subscriber,
so that NATS, which closes slow consumers, loses no message.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable

from benchmarks.generator import Audience, Bound, Load, Outcome
from benchmarks.measures.bench import Bench
from benchmarks.measures.edges import own_store, text_edge
from benchmarks.peers.nats_core import NatsCore, encode_pub
from benchmarks.peers.text import Text, encode_send, subscribe
from benchmarks.plan import warm_up
from benchmarks.results import Finding, Target, median

AUDIENCES = {100: Target(">=", 0.5), 1: Target(">=", 0.25)}  # subscribers -> deliveries, ours / NATS core
# More than either side needs for its best rate (measured from 1,000 to 32,000); a tenth of NATS's limit.
AHEAD = 8_000
TAG = "bench"
NOTE = f"publisher at most {AHEAD:,} messages ahead of the slowest; every delivery counted, none dropped"

MakeLoad = Callable[[int], Load]  # argument: number of subscribers
Round = dict[str, Outcome]  # by side


def measure(bench: Bench) -> list[Finding]:
    try:
        with contextlib.ExitStack() as running:
            bench.say("fanout: starting NATS and the edge")
            nats = NatsCore(bench.workshop)
            nats.start()
            running.callback(nats.stop)
            store = running.enter_context(own_store(bench, "fanout"))
            edge = running.enter_context(text_edge(bench, store, "penstock-fanout"))
            sides = {
                "ours": lambda count: _text_load(edge, count),
                "nats": lambda count: _nats_load(nats, count),
            }
            return [each for count in AUDIENCES for each in _findings(count, _rounds(bench, sides, count))]
    except OSError as failure:
        return [
            Finding("fanout", _what(count), unit="x", target=target, note=str(failure))
            for count, target in AUDIENCES.items()
        ]


def _text_load(edge: Text, count: int) -> Load:
    subscribers = [edge.connect() for _ in range(count)]
    for sock in subscribers:
        subscribe(sock, [TAG])
    audience = Audience(subscribers, "text-messages", fan=count, ahead=AHEAD)
    return Load("line", [edge.connect()], [encode_send(TAG)], window=AHEAD, ok="OK", audience=audience)


def _nats_load(nats: NatsCore, count: int) -> Load:
    subscribers: list[socket.socket] = [nats.subscribe(TAG) for _ in range(count)]
    audience = Audience(subscribers, "nats-messages", fan=count, ahead=AHEAD)
    return Load("nats-publish", [nats.connect()], [encode_pub(TAG)], window=1, audience=audience)


def _rounds(bench: Bench, sides: dict[str, MakeLoad], count: int) -> list[Round]:
    """Run the rounds, without the first one, which warms up; the sides begin by turns."""
    bound = bench.plan.fanout
    rounds: list[Round] = []
    for number in range(bench.plan.rounds + 1):
        order = list(sides)[:: 1 if number % 2 else -1]
        outcomes = {}
        for who in order:
            bench.say(f"fanout: 1 to {count}, {who}")
            outcomes[who] = _run(bench, sides[who](count), bound if number else warm_up(bound))
        rounds.append(outcomes)
    return rounds[1:]


def _run(bench: Bench, load: Load, bound: Bound) -> Outcome:
    with contextlib.closing(load):
        return bench.generator.run(load, bound)


def _what(count: int) -> str:
    return f"deliveries, 1 publisher to {count} subscriber{'s' * (count > 1)}"


def _findings(count: int, rounds: list[Round]) -> list[Finding]:
    def rates(side: str) -> list[float]:
        return [each[side].heard / each[side].seconds for each in rounds]

    def busy(side: str) -> str:
        share = median(each[side].cpu_s / each[side].seconds for each in rounds)
        return f"generator busy {share:.0%} of a core"

    quotients = [ours / theirs for ours, theirs in zip(rates("ours"), rates("nats"), strict=True)]
    what = _what(count)
    return [
        Finding(
            "fanout", f"{what}: Penstock text / {NatsCore.title}", quotients, "x", AUDIENCES[count], NOTE
        ),
        Finding("fanout", f"{what}: Penstock text", rates("ours"), "msg/s", note=busy("ours")),
        Finding("fanout", f"{what}: {NatsCore.title}", rates("nats"), "msg/s", note=busy("nats")),
    ]
