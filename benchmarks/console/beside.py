"""Measure the throughput that an edge loses to monitoring: a console's live view of all queues, and metric scrapes.

Three edges are loaded by turns: one alone, a second one alone (their difference is noise), and one whose store a
console watches and whose metrics are on and scraped once a round. The console is stopped during the others' turns.
"""

from __future__ import annotations

import asyncio
import os
import signal
import statistics
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Thread
from typing import Any

from benchmarks.console.bench import start
from benchmarks.loaded_edge import Edge
from benchmarks.process import Daemon, Workshop, workshop
from tests.console.local import HEADERS

ROUNDS = 30
ROUND_S = 3.0  # a console polls every two seconds; Prometheus would scrape in every fifth or tenth round
ALONE, AGAIN, WATCHED = "alone", "alone, again", "looked at"
WATCH = (
    "import sys, urllib.request as r; "
    "[None for _ in r.urlopen(r.Request(sys.argv[1], headers={'Authorization': sys.argv[2]}))]"
)


@contextmanager
def turn(*daemons: Daemon) -> Iterator[None]:
    for daemon in daemons:
        os.kill(daemon.pid, signal.SIGCONT)
    try:
        yield
    finally:
        for daemon in daemons:
            os.kill(daemon.pid, signal.SIGSTOP)


def watch_all_queues(place: Workshop, edge: Edge) -> tuple[Daemon, Daemon]:
    """Start a console, and a client that watches all queues there."""
    console, base = start(place, edge.store)
    events = f"{base}/events"
    command = [sys.executable, "-c", WATCH, events, HEADERS["Authorization"]]
    return console, place.start("watching", command, lambda: None)


def rate_while_watched(edge: Edge, *daemons: Daemon) -> float:
    with turn(*daemons):
        scraping = Thread(target=edge.scrape)
        scraping.start()
        rate, _ = edge.load(ROUND_S)
        scraping.join()
    return rate


def rates(place: Workshop) -> dict[str, list[float]]:
    """Return the messages a second of each round, without the first one, which warms up."""
    settings = {ALONE: (), AGAIN: (), WATCHED: ("metrics.queues=on",)}
    found: dict[str, list[float]] = {name: [] for name in settings}
    with ExitStack() as stack:
        edges = {
            name: stack.enter_context(Edge(place.folder / name, words).running())
            for name, words in settings.items()
        }
        watchers = watch_all_queues(place, edges[WATCHED])
        for number in range(ROUNDS + 1):
            first = number % len(edges)
            for name in [*edges][first:] + [*edges][:first]:
                edge = edges[name]
                rate = rate_while_watched(edge, *watchers) if name == WATCHED else edge.load(ROUND_S)[0]
                if number:
                    found[name].append(rate)
    return found


def summary(found: dict[str, list[float]]) -> dict[str, Any]:
    """Summarize each edge's rounds.

    share: the median over all rounds of the rate in relation to the first edge's. rounds: the rate of each round, in
    order, so that the share can be computed again.
    """
    return {
        name: {
            "rate": statistics.median(mine),
            "share": statistics.median(one / alone for one, alone in zip(mine, found[ALONE], strict=True)),
            "rounds": mine,
        }
        for name, mine in found.items()
    }


async def measure() -> dict[str, Any]:
    with workshop() as place:
        return summary(await asyncio.to_thread(rates, place))
