"""A process's tallies match the queue's counters (docs/store.md, Samples)."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from services.kit.measure import SECONDS_BUCKETS
from services.store import CommitPart, PipeSettings, Queue, Source
from services.store.model import records
from services.store.model.buckets import CLASSES, PUT_S
from services.store.model.client import INTERNAL_CLIENT
from services.store.model.clock import Clock, now
from services.store.model.errors import StoreError
from services.store.model.identities import RequestId
from services.store.model.operations import Send
from services.store.pipeline.tallies import Tally
from tests.servers import Server
from tests.store.desk import Desk, encode, numbered, until
from tests.store.logbook import arrived, logbook
from tests.store.pipeline.test_returns import singles

COUNTED = ("accepted", "given", "acked", "returned", "accepted_octets")
COUNTERS = ("added", "delivered", "acked", "returned", "bytes_in")


@pytest.fixture
async def desk(server: Server) -> AsyncIterator[Desk]:
    """Yield a desk that keeps its tallies."""
    async with Desk(server) as desk:
        desk.domain.tallies.keep()
        yield desk


def read_tallies(desk: Desk) -> dict[str, Tally]:
    """Return the counts since the last call, by queue."""
    return {tally.name: tally for tally in desk.domain.tallies.read(time.monotonic())}


async def agree(desk: Desk, *queues: Queue) -> dict[str, Tally]:
    seen = read_tallies(desk)
    for queue in queues:
        stats = await desk.stats(queue)
        tally = seen[queue.name]
        assert [getattr(tally, name) for name in COUNTED] == [stats[name] for name in COUNTERS]
        assert sum(tally.put) == tally.accepted
    return seen


def test_time_buckets_are_those_of_the_metrics() -> None:
    assert PUT_S == SECONDS_BUCKETS
    assert len(PUT_S) + 1 == CLASSES


async def test_tallies_match_the_queues_counters(desk: Desk, chance: random.Random) -> None:
    spec: dict[str, Any] = {"max_length": 300, "max_deliveries": 3}
    queues = [await desk.queue("one", **spec), await desk.queue("two", **spec)]
    asks: list[asyncio.Future[Any]] = []
    for step in range(300):
        queue, other = chance.sample(queues, 2)
        run = [b"x" * chance.choice((0, 1, 40, 900)) for _ in range(chance.choice((1, 2, 33, 70)))]
        held = singles(await desk.take(queue, chance.choice((1, 5, 40))))
        asks.append(
            desk.publishing(queue, *run, source=Source(INTERNAL_CLIENT), in_order=chance.random() < 0.3)
        )
        match chance.randrange(8):
            case 0 if held:
                asks.append(desk.releasing(held, failed=chance.random() < 0.5, to_end=chance.random() < 0.5))
            case 1 if held:
                asks.append(desk.rejecting(held, "refused"))
            case 2:
                parts = (
                    CommitPart(queue, held, encode(b"c"), "t"),
                    CommitPart(other, [], encode(b"d", b"ee"), "t"),
                )
                asks.append(desk.committing(f"t{step}", *parts))
            case 3:
                asks.append(desk.burying(queue, *encode(b"gone"), "injured"))
            case 4:
                asks.append(desk.numbering("journal", step + 1, queue, b"numbered"))
                asks.append(desk.numbering("journal", step + 1, queue, b"numbered"))
            case 5:
                asks += [desk.settling(held[:2]), desk.settling(held[:2])] if held else []
            case 6:
                await ring(desk, queue, b"%016d" % (step + 1))
            case _:
                asks += [desk.settling(held)] if held else []
        if step % 10 == 0:
            await asyncio.gather(*asks, return_exceptions=True)
    await asyncio.gather(*asks, return_exceptions=True)
    seen = await agree(desk, *queues)
    refused: Counter[str] = sum((tally.refused for tally in seen.values()), Counter())
    assert refused == desk.refusals
    assert {"queue_full", "lease_lost"} <= set(refused)


async def ring(desk: Desk, queue: Queue, request: bytes) -> None:
    """Make a push and a pull, each repeated, their settlement, and a pull of a too large message."""
    results: list[Any] = []
    source, other, third = Source(INTERNAL_CLIENT), b"p" + request[1:], b"l" + request[1:]
    for _ in range(2):
        desk.pipe.idempotent.publish(
            source, RequestId(request, 60_000), queue, *encode(b"pushed"), "t", results.append
        )
        desk.pipe.idempotent.pull(source, other, queue, 1000, 60_000, results.append)
        desk.pipe.idempotent.settle(source, other, queue, results.append)
    desk.pipe.idempotent.publish(
        source, RequestId(b"q" + request[1:], 60_000), queue, *encode(b"pushed"), "t", results.append
    )
    desk.pipe.idempotent.pull(source, third, queue, -1, 60_000, results.append)
    await until(lambda: len(results) == 8)


async def test_log_copies_count_for_their_queues(desk: Desk) -> None:
    """Check that copies by a SEND or over a link count for their queues; refusals of a SEND count for none."""
    async with logbook(desk) as book:
        queue, full = await book.bound("copies", "t"), await book.bound("full", "t", max_length=1)
        known = await book.log.subscriptions()
        results: list[object] = []
        for _ in range(2):
            copies = [(q, records.encode(b"body")) for q in (queue, full)]
            send = Send(b"SEND t x\n", 1, copies, "test", known.version, results.append)
            book.log.send(Source(INTERNAL_CLIENT), send)
            await until(lambda: results)
            results.clear()
        item = arrived(
            (b"one", b"i1"), 1, b"t 1", b"t 2", copies=[(0, queue, records.encode(b"over a link"))]
        )
        assert await book.accept(item) == (2, 0)
        seen = await agree(desk, queue, full)
    assert (seen["copies"].accepted, seen["full"].accepted) == (2, 1)
    assert seen[""].refused == {"queue_full": 1}


async def test_reclaimed_messages_count_as_returned(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(5))
    await desk.take(queue, 3)
    fence = await desk.domain.claims.own(queue, "me", 60_000)
    assert fence is not None
    assert await desk.domain.claims.reclaim(queue, fence) == 3
    assert (await agree(desk, queue))["orders"].returned == 3


async def test_delivered_octets_and_first_waits_are_counted(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, b"aa", b"bbb", b"")
    got = await desk.take(queue)
    await desk.release(got)
    await desk.take(queue)
    seen = read_tallies(desk)["orders"]
    assert (seen.given, seen.given_octets) == (6, 10)
    assert sum(seen.wait) == 3


async def test_wait_is_measured_by_the_stores_clock(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(3))
    desk.domain.tallies.clock = await ahead(desk, 7_000_000)
    await desk.take(queue, 1)
    desk.domain.tallies.clock = await ahead(desk, 107_000_000)
    await desk.take(queue, 2)
    wait = read_tallies(desk)["orders"].wait
    assert (wait[-3], wait[-1]) == (1, 2)  # above 1 h, above 1 day


async def ahead(desk: Desk, ms: int) -> Clock:
    """Return a store's clock that is ahead."""
    clock, asked = Clock(), now()
    clock.heard(await desk.store.now_ms() + ms, asked)
    return clock


async def test_refusals_of_an_unavailable_store_are_counted_per_queue(own_server: Server) -> None:
    """Check this for waiting and for later messages."""
    async with Desk(own_server, pipe=PipeSettings(patience_s=0.2)) as desk:
        queue = await desk.queue()
        desk.domain.tallies.keep()
        own_server.kill9()
        await until(lambda: desk.pipe.trouble)
        waits = desk.publishing(queue, *numbered(3))
        taking = desk.taking(queue)
        for ask in (waits, taking):
            with pytest.raises(StoreError):
                await ask
        with pytest.raises(StoreError):
            await desk.publish(queue, *numbered(2))
        assert read_tallies(desk)["orders"].refused == {"store_unavailable": 6}


async def test_tallies_without_reader_are_not_kept(server: Server) -> None:
    async with Desk(server) as desk:
        for number in range(3):
            queue = await desk.queue(f"q{number}")
            await desk.put(queue, b"x")
        assert read_tallies(desk) == {}
        desk.domain.tallies.keep()
        await desk.put(queue, b"x")
        assert list(read_tallies(desk)) == ["q2"]
        assert read_tallies(desk) == {}


async def test_tallies_put_back_are_merged(desk: Desk) -> None:
    queue, other = await desk.queue(), await desk.queue("other")
    await desk.put(queue, b"x")
    await desk.put(other, b"y")
    first = read_tallies(desk)
    await desk.put(queue, b"z")
    desk.domain.tallies.put_back(first.values())
    seen = await agree(desk, queue, other)
    assert (seen["orders"].accepted, seen["orders"].since) == (2, first["orders"].since)
