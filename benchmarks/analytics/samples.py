"""Samples of a day: in each tick every process reports each queue and itself, and the store reports all queues."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.analytics.filling import Day, template

TICK_MS = 10_000
EDGES = (b"tmq", b"ring")  # a process of each
HISTOGRAMS = tuple(b",".join(b"%d" % (at * each % 7) for at in range(16)) for each in range(1, 8))
STILL = (b"returned", b"fenced", b"expired", b"duplicates", b"redriven", b"purged", b"dead_trimmed")


def samples(key: str, queues: list[str], day: Day) -> Iterator[bytes]:
    """Yield XADDs for as many ticks as the number of samples takes."""
    edges = [_edge(key.encode(), edge) for edge in EDGES]
    looks = [
        _queue(key.encode(), edge, queue.encode(), at) for edge in EDGES for at, queue in enumerate(queues)
    ]
    depths = [_depth(key.encode(), queue.encode(), at) for at, queue in enumerate(queues)]
    ticks = -(-day.samples // (len(edges) + len(looks) + len(depths)))
    left = day.samples
    for tick in range(ticks):
        at = day.end_ms - (ticks - tick) * min(TICK_MS, day.ms // ticks)
        told = [made % (at, tick + 1) for made in (*edges, *looks)]
        told += [made % (at, *(100_000_000 + tick,) * 4) for made in depths]
        yield from told[:left]
        left -= len(told)


def _sample(key: bytes, fields: dict[bytes, bytes]) -> bytes:
    return template((b"XADD", key, b"%13d-*"), {b"v": b"1", **fields})


def _of_process(edge: bytes) -> dict[bytes, bytes]:
    return {b"edge": edge, b"process": edge + b"-1", b"n": b"%08d", b"ms": b"10000"}


def _edge(key: bytes, edge: bytes) -> bytes:
    flow = {b"connections": b"9", b"opened": b"1", b"received_octets": b"7000", b"sent_octets": b"8000"}
    return _sample(key, {b"kind": b"edge", **_of_process(edge), **flow, b"refused": b"busy=2"})


def _queue(key: bytes, edge: bytes, queue: bytes, at: int) -> bytes:
    counts = {b"in": b"%d" % (at * 3), b"out": b"%d" % (at * 2), b"acked": b"9", b"returned": b"1"}
    octets = {b"rejected": b"0", b"in_octets": b"%d" % (at * 300), b"out_octets": b"%d" % (at * 200)}
    times = {b"put": HISTOGRAMS[at % 7], b"wait": HISTOGRAMS[at % 5]}
    whose = {b"kind": b"queue", **_of_process(edge), b"queue": queue}
    return _sample(key, {**whose, **counts, **octets, b"refused": (b"", b"full=3")[at % 2], **times})


def _depth(key: bytes, queue: bytes, at: int) -> bytes:
    now = {b"len": b"50", b"leased": b"2", b"oldest_ms": b"900", b"dead": b"7"}
    grow = dict.fromkeys((b"added", b"delivered", b"acked", b"dead_all"), b"%9d")
    octets = {b"bytes_in": b"5000", b"bytes_out": b"5000"}
    whose = {b"kind": b"depth", b"queue": queue, b"qid": b"%d" % at}
    return _sample(key, {**whose, **now, **grow, **dict.fromkeys(STILL, b"3"), **octets})
