"""Test how a streaming query shares its batches among streams, also after a restart."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from services.redis_stream.following import Following
from services.redis_stream.options import Options
from services.redis_stream.schema import COLUMNS, Kind
from services.store.model.keys import DomainKeys
from tests.redis_stream.streams import EDGE, LETTER, add, with_desk
from tests.servers import Server
from tests.store.desk import Desk

Offsets = dict[str, str]


def batch(server: Server, kind: Kind, start: Offsets | None, rows: int) -> tuple[Offsets, list[str]]:
    """Return the next offsets, and the keys of streams with rows, from a new reader."""
    options = Options.parse({"url": server.url, "kind": str(kind), "max_rows": str(rows)})
    following = Following(options, [column.name for column in COLUMNS[kind]])
    begin = following.initialOffset() if start is None else start
    end = following.latestOffset(begin, following.getDefaultReadLimit())
    parts = following.partitions(begin, end)
    found = [key for part in parts for read in following.read(part) for key in read["stream"].to_pylist()]
    return json.loads(json.dumps(end)), found


def test_a_stream_that_always_has_more_leaves_others_their_share(server: Server) -> None:
    async def make(desk: Desk) -> None:
        await desk.queue("near")
        await desk.queue("far", domain="second")

    with_desk(server, make)
    keys = [DomainKeys(domain).samples for domain in ("main", "second")]
    server.call("DEL", *keys)
    found, at = Counter[str](), None
    for step in range(1, 11):
        for key, count in zip(keys, (5, 1), strict=True):
            add(server, [(f"{step}-{number}", EDGE) for number in range(1, count + 1)], key)
        at, some = batch(server, Kind.SAMPLES, at, 1)
        found.update(some)
    assert found == dict.fromkeys(keys, 5)


@pytest.mark.parametrize("rows", [1, 3, 8, 100])
def test_all_queues_have_their_turn_and_each_letter_comes_once(server: Server, rows: int) -> None:
    queues, letters = 7, 4

    async def make(desk: Desk) -> list[str]:
        return [(await desk.queue(f"q{number}")).keys[6] for number in range(queues)]

    keys = with_desk(server, make)
    for key in keys:
        add(server, [(f"{number}-0", LETTER) for number in range(1, letters + 1)], key)
    found, at, batches = Counter[str](), None, 0
    while sum(found.values()) < queues * letters:
        at, some = batch(server, Kind.DEAD, at, rows)
        assert len(some) == min(rows, queues * letters - sum(found.values()))
        found.update(some)
        batches += 1
        if batches * rows >= queues:
            assert min(found[key] for key in keys) >= 1
    assert found == dict.fromkeys(keys, letters)
    assert batch(server, Kind.DEAD, at, rows) == (at, [])
