"""Fill streams of a server, also with dead letters by a real store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from itertools import islice
from typing import Any

import redis

from tests.servers import Server
from tests.store.desk import Desk

KEY = "s"
PIPELINED = 500
QUEUE = {
    "v": "1",
    "kind": "queue",
    "edge": "tmq",
    "process": "tmq-1f",
    "n": "7",
    "ms": "10000",
    "queue": "orders",
    **dict.fromkeys(("in", "in_octets", "out", "out_octets", "acked", "returned", "rejected"), "3"),
    "refused": "full=3,paused=1",
    "refused_puts": "3",
    "put": "0,3" + ",0" * 14,
    "wait": "1" + ",0" * 15,
}
EDGE = {
    **{name: QUEUE[name] for name in ("v", "edge", "process", "n", "ms")},
    "kind": "edge",
    **dict.fromkeys(("connections", "opened", "received_octets", "sent_octets"), "5"),
    "refused": "",
}
DEPTH = {
    "v": "1",
    "kind": "depth",
    "queue": "orders",
    "qid": "4",
    **dict.fromkeys(
        [
            "len",
            "leased",
            "oldest_ms",
            "dead",
            "added",
            "delivered",
            "acked",
            "returned",
            "fenced",
            "dead_all",
        ],
        "2",
    ),
    **dict.fromkeys(
        ["expired", "duplicates", "redriven", "purged", "dead_trimmed", "bytes_in", "bytes_out"], "4"
    ),
    "age_ms": "4",
}
LETTER = {
    "reason": "refused",
    "queue": "4",
    "entry": "1-1",
    "enqueued": "1700000000000",
    "died": "1700000001000",
    "origin": "tmq 127.0.0.1",
    "acquired": "1",
    "failed": "1",
    "first": "1700000000500",
    "last": "0",
    "error": "no",
    "body": "x",
}


def add(server: Server, entries: Iterable[tuple[str, Any]], key: str = KEY) -> list[str]:
    """Add (id, fields) pairs and return their ids; fields given as a number are a body of so many octets."""
    ids: list[str] = []
    left = iter(entries)
    with redis.Redis.from_url(server.url) as client:
        pipeline = client.pipeline(transaction=False)
        while some := list(islice(left, PIPELINED)):
            for identifier, fields in some:
                told = {"b": b"x" * fields} if isinstance(fields, int) else fields
                words = [word for pair in told.items() for word in pair]
                pipeline.execute_command("XADD", key, identifier, *words)
            ids += [each.decode() for each in pipeline.execute()]
    return ids


def numbered(count: int, first: int = 1) -> list[tuple[str, int]]:
    return [(f"{number}-0", 1) for number in range(first, first + count)]


def with_desk(server: Server | str, work: Callable[[Desk], Awaitable[Any]], **how: Any) -> Any:
    """Run work with a store in its own event loop, and return the result."""

    async def run() -> Any:
        async with Desk(server, **how) as desk:
            return await work(desk)

    return asyncio.run(run())
