"""Check that a message's cost does not grow with a hundred thousand subscriptions, and measure their memory.

The traffic is the same in both cases: ten tags, each matched by exactly one subscription, on ten connections that are
read. In one case there are only these ten; in the other, there are many more, half of them tags and half prefixes, on
connections that receive nothing. One edge process serves both cases by turns.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from benchmarks.generator import Audience, Load, LoadFailed
from benchmarks.machine import cpu_s, settled_kib
from benchmarks.measures.bench import Bench
from benchmarks.measures.edges import own_store, text_edge
from benchmarks.peers.peer import IN_FLIGHT
from benchmarks.peers.text import Text, encode_send, read_oks, send_lines
from benchmarks.plan import warm_up
from benchmarks.results import Finding, Target, median

FLAT = Target(">=", 0.8)  # SEND rate with the large table / with the small one
LIGHT = Target("<=", 1.0)  # KiB a subscription
HOT = IN_FLIGHT.connections  # tags in use, one for each publisher
MEMORY = "memory of the edge per subscription"
AT_ONCE = 20  # connections that subscribe at the same time
SMALL, LARGE, SPREAD = "small", "large", "spread"


def tag(number: int) -> str:
    return f"bench.{number:06}.load"


def pattern(number: int) -> str:
    """Return a pattern that matches only the tag of that number: a prefix for odd numbers."""
    return f"bench.{number:06}.*" if number % 2 else tag(number)


@dataclass(slots=True)
class Table:
    """All connections. The crowd subscribes and unsubscribes; its connections stay open."""

    hot: list[socket.socket]
    crowd: list[socket.socket]
    total: int  # subscriptions, with those of the crowd
    subscribed_per_s: list[float] = field(default_factory=list)

    def numbers(self) -> Iterator[tuple[socket.socket, range]]:
        """Yield each connection of the crowd with its tags."""
        for i, sock in enumerate(self.crowd):
            yield sock, range(HOT + i, self.total, len(self.crowd))

    def subscribe_hot(self) -> None:
        self._converse((sock, [f"SUBSCRIBE 1 {pattern(i)}"]) for i, sock in enumerate(self.hot))

    def subscribe_crowd(self) -> None:
        started = time.perf_counter()
        self._converse(
            (sock, [f"SUBSCRIBE {i} {pattern(number)}" for i, number in enumerate(numbers, 1)])
            for sock, numbers in self.numbers()
        )
        self.subscribed_per_s.append((self.total - HOT) / (time.perf_counter() - started))

    def unsubscribe_crowd(self) -> None:
        self._converse(
            (sock, [f"UNSUBSCRIBE {i}" for i, _ in enumerate(numbers, 1)]) for sock, numbers in self.numbers()
        )

    @staticmethod
    def _converse(conversations: Iterator[tuple[socket.socket, list[str]]]) -> None:
        """Run a few conversations at a time: buffers of a hundred thousand requests would distort memory figures."""
        while asked := list(itertools.islice(conversations, AT_ONCE)):
            for sock, lines in asked:
                send_lines(sock, lines)
            for sock, lines in asked:
                read_oks(sock, len(lines))


@dataclass(frozen=True, slots=True)
class Sent:
    rate: float  # SENDs/s
    cpu_us: float  # of the edge, each


Round = dict[str, Sent]  # by table and traffic


def measure(bench: Bench) -> list[Finding]:
    plan = bench.plan
    try:
        with contextlib.ExitStack() as running:
            store = running.enter_context(own_store(bench, "subscriptions"))
            edge = running.enter_context(text_edge(bench, store, "penstock-subscriptions"))
            table = open_table(edge, plan.subscriptions, plan.subscribers, running)
            weight = _weigh(bench, edge, table)
            rounds = _rounds(bench, edge, table)
    except OSError as failure:
        wanted = {_what(plan.subscriptions): FLAT, MEMORY: LIGHT}
        return [
            Finding("subscriptions", what, target=target, note=str(failure))
            for what, target in wanted.items()
        ]
    return _findings(rounds, weight, table)


def open_table(edge: Text, total: int, connections: int, running: contextlib.ExitStack) -> Table:
    sockets = [running.enter_context(edge.connect()) for _ in range(connections)]
    return Table(sockets[:HOT], sockets[HOT:], total)


def _weigh(bench: Bench, edge: Text, table: Table) -> float:
    """Return the KiB for each subscription: resident memory of the edge, before the first message."""
    bench.say(f"subscriptions: {table.total:,} are made")
    before = settled_kib(edge.daemon.pid)
    table.subscribe_hot()
    table.subscribe_crowd()
    return (settled_kib(edge.daemon.pid) - before) / table.total


def _rounds(bench: Bench, edge: Text, table: Table) -> list[Round]:
    """Run the rounds, each starting with the table of the last one's end; the first, a warm-up, has the crowd."""
    rounds = []
    for number in range(bench.plan.rounds + 1):
        sent: Round = {}
        steps = [_with_crowd, _without_crowd] if number % 2 == 0 else [_without_crowd, _with_crowd]
        for i, step in enumerate(steps):
            if i:
                table.subscribe_crowd() if step is _with_crowd else table.unsubscribe_crowd()
            sent |= step(bench, edge, table, number == 0)
        rounds.append(sent)
    return rounds[1:]


def _with_crowd(bench: Bench, edge: Text, table: Table, is_warm_up: bool) -> Round:
    return {
        LARGE: _send(bench, edge, _hot_load(edge, table), is_warm_up),
        SPREAD: _send(bench, edge, spread_load(edge, table), is_warm_up),
    }


def _without_crowd(bench: Bench, edge: Text, table: Table, is_warm_up: bool) -> Round:
    return {SMALL: _send(bench, edge, _hot_load(edge, table), is_warm_up)}


def _hot_load(edge: Text, table: Table) -> Load:
    requests = [encode_send(tag(number)) for number in range(HOT)]
    return _load(edge, requests, table.hot, parts=1)


def spread_load(edge: Text, table: Table) -> Load:
    """Return a load that sends to all tags in turn, a tenth of them from each publisher."""
    requests = [b"".join(encode_send(tag(n)) for n in range(i, table.total, HOT)) for i in range(HOT)]
    return _load(edge, requests, table.hot + table.crowd, parts=table.total // HOT)


def _load(edge: Text, requests: list[bytes], audience: list[socket.socket], parts: int) -> Load:
    return Load(
        "line",
        [edge.connect() for _ in requests],
        requests,
        IN_FLIGHT.window,
        ok="OK",
        parts=parts,
        audience=Audience(audience, "text-messages", fan=1),
    )


def _send(bench: Bench, edge: Text, load: Load, is_warm_up: bool) -> Sent:
    """Send until all messages are answered and delivered. The subscribers' connections stay open."""
    bench.say("subscriptions: sending")
    bound = bench.plan.subscribed
    before = cpu_s(edge.daemon.pid)
    try:
        outcome = bench.generator.run(load, warm_up(bound) if is_warm_up else bound)
    finally:
        for sock in load.sockets:
            sock.close()
    if outcome.refused:
        raise LoadFailed(f"{outcome.refused:,} SENDs were refused")
    return Sent(outcome.rate, (cpu_s(edge.daemon.pid) - before) * 1e6 / max(1, outcome.messages))


def _what(total: int) -> str:
    return f"SEND {IN_FLIGHT.name}, 1 match each, with {total:,} subscriptions / with {HOT}"


def _findings(rounds: list[Round], weight: float, table: Table) -> list[Finding]:
    def rates(which: str) -> list[float]:
        return [each[which].rate for each in rounds]

    def cpu(which: str) -> str:
        return f"CPU of the edge: {median(each[which].cpu_us for each in rounds):.2f} us each"

    def info(what: str, values: list[float], note: str = "", unit: str = "msg/s") -> Finding:
        return Finding("subscriptions", what, values, unit, note=note)

    connections = len(table.hot) + len(table.crowd)

    def quotients(which: str) -> list[float]:
        return [each[which].rate / each[SMALL].rate for each in rounds]

    note = f"on {connections:,} connections, half tags and half prefixes"
    return [
        Finding("subscriptions", _what(table.total), quotients(LARGE), "x", FLAT, note),
        Finding("subscriptions", MEMORY, [weight], "KiB", LIGHT),
        info(f"SEND with {HOT} subscriptions", rates(SMALL), cpu(SMALL)),
        info(f"SEND to {HOT} tags with {table.total:,} subscriptions", rates(LARGE), cpu(LARGE)),
        info(
            f"SEND to all {table.total:,} tags in turn, delivered to {connections:,} connections",
            rates(SPREAD),
            f"{cpu(SPREAD)}; {median(quotients(SPREAD)):.2f} x that with {HOT}: {connections:,} sockets to write to",
        ),
        info(f"SUBSCRIBE, {table.total:,} of them", [median(table.subscribed_per_s)], unit="a second"),
    ]
