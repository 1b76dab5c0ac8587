"""Measure the latency from publishing to delivery below full load: through two edges of one store, and one link.

Open loop: each message has a due time that does not depend on earlier answers and carries it as a stamp. Its latency is
the time from then until the subscriber, a connection of another edge, has read it.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.generator import Audience, Bound, Load, Outcome
from benchmarks.measures.bench import Bench
from benchmarks.measures.edges import own_store, text_edge
from benchmarks.peers.text import Text, converse, encode_send, subscribe
from benchmarks.plan import warm_up
from benchmarks.process import NotRun
from benchmarks.results import Finding, Target

RATE = 2_000.0  # messages/s
# SENDs that may wait for their OK: four seconds' worth, so that the pace never depends on answers
WINDOW = 8_000
TAG = "bench"
LINK_TIMEOUT_S = 30.0
PROBE_S = 0.1


@dataclass(frozen=True, slots=True)
class Path:
    """A path from the publisher's edge to the subscriber's."""

    title: str
    wanted: Target  # ms, p99
    has_link: bool


PATHS = (
    Path("through two edges of one store", Target("<=", 10.0), has_link=False),
    Path("through one link, two stores", Target("<=", 20.0), has_link=True),
)


def measure(bench: Bench) -> list[Finding]:
    return [finding for path in PATHS for finding in _measure(bench, path)]


def _measure(bench: Bench, path: Path) -> list[Finding]:
    bench.say(f"delivery: starting two edges, {path.title}")
    try:
        with _edges(bench, path) as (near, far):
            rounds = [_round(bench, path, near, far, number) for number in range(bench.plan.rounds + 1)][1:]
    except OSError as failure:
        return [Finding("delivery", _what("p99", path), unit="ms", target=path.wanted, note=str(failure))]
    return _findings(path, rounds)


@contextlib.contextmanager
def _edges(bench: Bench, path: Path) -> Iterator[tuple[Text, Text]]:
    """Run the publisher's edge and the subscriber's, joined by a store or a link."""
    with contextlib.ExitStack() as running:
        store = running.enter_context(own_store(bench, "delivery"))
        near = running.enter_context(text_edge(bench, store, "penstock-near"))
        neighbours = []
        if path.has_link:
            store = running.enter_context(own_store(bench, "delivery-far"))
            neighbours = [near.link_port]
        far = running.enter_context(text_edge(bench, store, "penstock-far", neighbours))
        _wait_until_joined(near, far)
        yield near, far


def _wait_until_joined(near: Text, far: Text) -> None:
    """Send probes until one arrives: a link carries only messages sent after its setup."""
    deadline = time.monotonic() + LINK_TIMEOUT_S
    with near.connect() as publisher, far.connect() as subscriber:
        subscribe(subscriber, ["probe"])
        while not _comes_through(publisher, subscriber):
            if time.monotonic() > deadline:
                raise NotRun(f"nothing came from one edge to the other in {LINK_TIMEOUT_S:.0f} s")


def _comes_through(publisher: socket.socket, subscriber: socket.socket) -> bool:
    converse(publisher, ["SEND probe "])
    subscriber.settimeout(PROBE_S)
    try:
        return bool(subscriber.recv(4096))
    except TimeoutError:
        return False


def _round(bench: Bench, path: Path, near: Text, far: Text, number: int) -> Outcome:
    bench.say(f"delivery: {path.title}")
    seconds = bench.plan.delivery_seconds
    bound = Bound(int(RATE * seconds), seconds * 2, RATE)
    subscriber = far.connect()
    subscribe(subscriber, [TAG])
    audience = Audience([subscriber], "text-messages", fan=1, stamped=True)
    load = Load("line", [near.connect()], [encode_send(TAG)], WINDOW, ok="OK", audience=audience)
    with contextlib.closing(load):
        return bench.generator.run(load, bound if number else warm_up(bound))


def _what(which: str, path: Path) -> str:
    return f"{which} from publish to delivery at {RATE:,.0f} msg/s, {path.title}"


def _findings(path: Path, rounds: list[Outcome]) -> list[Finding]:
    slowest = min(each.rate for each in rounds)
    note = "" if slowest > 0.9 * RATE else f"the pace was not kept: {slowest:,.0f} msg/s"
    return [
        Finding(
            "delivery", _what("p99", path), [each.p99_us / 1e3 for each in rounds], "ms", path.wanted, note
        ),
        Finding("delivery", _what("median", path), [each.p50_us / 1e3 for each in rounds], "ms"),
    ]
