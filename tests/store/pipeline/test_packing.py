"""Operations of many connections share calls; each connection's keep their order (docs/decisions/0005)."""

import asyncio

import pytest

from services.store import INTERNAL_CLIENT, CommitPart, PipeSettings, Queue, Source
from services.store.pipeline.call import MAX_BYTES, MAX_QUEUES
from tests.servers import Server
from tests.store.desk import Desk, bodies, encode, numbered


async def test_operations_during_a_call_share_the_next_one(desk: Desk) -> None:
    queue = await desk.queue()
    before = desk.pipe.calls
    runs = [desk.publishing(queue, b"%d" % i, source=Source(INTERNAL_CLIENT)) for i in range(500)]
    assert await asyncio.gather(*runs) == [[]] * 500
    assert desk.pipe.calls - before <= 2
    assert bodies(await desk.take(queue)) == [b"%d" % i for i in range(500)]
    assert len(await desk.domain.peek(queue, 1)) == 0


async def test_records_of_the_same_origin_share_entries(desk: Desk) -> None:
    queue = await desk.queue()
    await asyncio.gather(
        *(desk.publishing(queue, b"%d" % i, origin="same", source=Source(INTERNAL_CLIENT)) for i in range(64))
    )
    assert [d.count for d in await desk.take(queue)] == [32, 32]
    await asyncio.gather(
        *(
            desk.publishing(queue, b"%d" % i, origin=f"t {i % 2}", source=Source(INTERNAL_CLIENT))
            for i in range(4)
        )
    )
    assert [(d.count, d.origin) for d in await desk.take(queue)] == [(1, "t 0"), (1, "t 1")] * 2


async def test_take_does_not_see_a_later_publish(desk: Desk) -> None:
    """Check that a take before a publish of its connection finds an empty queue, in one call (tmq.md 1.2)."""
    queue = await desk.queue()
    before = desk.pipe.calls
    empty = desk.taking(queue, 10)
    put = desk.publishing(queue, b"a", b"b")
    count = desk.counting(queue)
    some = desk.taking(queue, 1)
    rest = desk.counting(queue)
    assert bodies(await empty) == []
    assert (await put, await count) == ([], 2)
    assert (bodies(await some), await rest) == ([b"a"], 1)
    assert desk.pipe.calls - before == 1


async def test_answers_keep_the_order_of_requests(desk: Desk) -> None:
    queue = await desk.queue()
    order: list[int] = []
    for i in range(50):
        kind = i % 3
        if kind == 0:
            desk.pipe.messages.publish(desk.source, queue, encode(b"x"), "t", lambda _e, i=i: order.append(i))
        elif kind == 1:
            desk.pipe.messages.take(desk.source, queue, 1, lambda _d, _m, i=i: order.append(i))
        else:
            desk.pipe.messages.count(desk.source, queue, lambda _n, i=i: order.append(i))
    await desk.count(queue)
    assert order == list(range(50))


async def test_order_of_one_connection_does_not_delay_others(desk: Desk) -> None:
    """Check that takes of other connections see publishes of the same call."""
    queue = await desk.queue()
    other = Source(INTERNAL_CLIENT)
    taken = desk.taking(queue, 5, source=other)
    put = desk.publishing(queue, b"a")
    assert (bodies(await taken), await put) == ([b"a"], [])


async def test_settles_make_room_before_publishes(desk: Desk) -> None:
    queue = await desk.queue(max_length=1)
    await desk.put(queue, b"a")
    got = await desk.take(queue)
    put = desk.publishing(queue, b"b", source=Source(INTERNAL_CLIENT))
    settled = desk.settling(got)
    assert (await put, await settled) == ([], None)


async def test_calls_are_bounded(desk: Desk) -> None:
    queue = await desk.queue()
    before = desk.pipe.calls
    await asyncio.gather(
        *(desk.publishing(queue, *numbered(600), source=Source(INTERNAL_CLIENT)) for _ in range(4))
    )
    assert desk.pipe.calls - before >= 4
    before = desk.pipe.calls
    await asyncio.gather(
        *(
            desk.publishing(queue, b"x" * (MAX_BYTES // 2 + 1), source=Source(INTERNAL_CLIENT))
            for _ in range(3)
        )
    )
    assert desk.pipe.calls - before == 3
    assert await desk.count(queue) == 2403


async def test_more_queues_than_fit_in_a_call(desk: Desk) -> None:
    queues = [Queue(f"n{i}", f"none{i}", "main", "test", (await desk.queue(f"n{i}")).spec) for i in range(2)]
    many = [queues[i % 2] for i in range(MAX_QUEUES + 10)]
    real = [await desk.queue(f"r{i}") for i in range(MAX_QUEUES + 10)]
    assert await asyncio.gather(
        *(desk.publishing(q, b"x", source=Source(INTERNAL_CLIENT)) for q in real)
    ) == [[]] * len(real)
    assert [len(r) for r in await asyncio.gather(*(desk.publishing(q, b"x") for q in many))] == [1] * len(
        many
    )
    assert await asyncio.gather(*(desk.counting(q) for q in real)) == [1] * len(real)


async def test_large_commit_shares_its_call(desk: Desk) -> None:
    queues = [await desk.queue(f"q{i}") for i in range(20)]
    before = desk.pipe.calls
    put = desk.publishing(queues[0], b"before")
    await desk.commit("t", *(CommitPart(q, [], encode(b"x"), "t") for q in queues))
    assert await put == []
    assert desk.pipe.calls - before <= 2
    assert await asyncio.gather(*(desk.counting(q) for q in queues)) == [2] + [1] * 19


async def test_pending_octets_are_counted_and_waiters_resumed(server: Server) -> None:
    async with Desk(server, pipe=PipeSettings(max_pending_bytes=1 << 20)) as desk:
        queue, waiting = await desk.queue(), desk.pipe.waiting
        runs = [desk.publishing(queue, b"x" * (1 << 19), source=Source(INTERNAL_CLIENT)) for _ in range(4)]
        assert waiting.congested
        called: list[bool] = []
        waiting.when_clear(lambda: called.append(waiting.congested))
        assert called == []
        await asyncio.gather(*runs)
        assert called == [False]
        assert waiting.pending_bytes == 0


async def test_failing_callback_does_not_affect_others(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """Check that an error in one connection's callback does not affect answers to others in the same call."""
    queue = await desk.queue()

    def fails(*_: object) -> None:
        raise RuntimeError("a bug")

    first = desk.publishing(queue, b"a", source=Source(INTERNAL_CLIENT))
    desk.pipe.messages.publish(Source(INTERNAL_CLIENT), queue, encode(b"b"), "t", fails)
    second = desk.publishing(queue, b"c", source=Source(INTERNAL_CLIENT))
    desk.pipe.messages.take(Source(INTERNAL_CLIENT), queue, 1, fails)
    third = desk.taking(queue, 1, source=Source(INTERNAL_CLIENT))
    desk.pipe.messages.count(Source(INTERNAL_CLIENT), queue, fails)
    fourth = desk.counting(queue)
    async with asyncio.timeout(5):
        assert (await first, await second) == ([], [])
        assert len(await third) == 1
        assert await fourth == 1
        assert await desk.publish(queue, b"d") == []
    assert "a bug" in caplog.text
