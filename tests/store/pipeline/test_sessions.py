"""Sessions: heartbeats, and leases of dead sessions (docs/store.md, Sessions and leases)."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis.exceptions import ResponseError

from services.store import QueueSpec
from services.store.model.errors import LeaseLost, StoreUnavailable
from services.store.pipeline.domain import Timing
from tests.servers import Client, Server
from tests.store.desk import Desk, bodies, encode, numbered, until
from tests.store.lane import Lane
from tests.store.pipeline.test_replays import Answers, take

SHORT = Timing(session_timeout_ms=300, beat_s=0.05, sweep_s=0.1)
VISIBLE = "1ms"  # the session's own timeout decides


@pytest.fixture
async def desk(server: Server) -> AsyncIterator[Desk]:
    async with Desk(server, timing=SHORT) as desk:
        yield desk


@pytest.fixture
def mute(client: Client, desk: Desk) -> Lane:
    """Return a session that never sends a heartbeat."""
    return Lane(client, "mute", desk.pipe.epoch)


async def swept(desk: Desk, session: str) -> bool:
    """Sweep once more; return whether the session is removed."""
    await desk.domain.sweep()
    keys = desk.domain.keys
    scores = [await desk.domain.link.call("ZSCORE", key, session) for key in (keys.sessions, keys.dying)]
    return scores == [None, None]


async def passed(desk: Desk, ms: int) -> None:
    start = await desk.store.now_ms()

    async def over() -> bool:
        return await desk.store.now_ms() > start + ms

    await until(over)


async def test_dead_sessions_messages_return_as_failed(desk: Desk, mute: Lane) -> None:
    queue = await desk.queue(visibility_timeout=VISIBLE)
    await desk.put(queue, *numbered(100))
    got = take(mute, queue, 50)
    answers = Answers()
    mute.messages.settle(mute.source, got[:5], answers)
    mute.messages.release(mute.source, got[5:8], failed=False, done=answers)
    mute.send()
    assert len(take(mute, queue, 1)) == 1
    await until(lambda: swept(desk, "mute"))
    again = await desk.take(queue)
    assert bodies(again) == numbered(95, 5)
    counts = [(d.acquired, d.failed) for d in again for _ in range(d.count)]
    assert counts == [(2, 1), (1, 0), (1, 0), *[(1, 1)] * 42, *[(1, 0)] * 50] or counts[:3] == [
        (3, 1),
        (2, 0),
        (2, 0),
    ]
    stats = await desk.stats(queue)
    assert (stats["in_flight"], stats["fenced"], stats["acked"]) == (95, 0, 5)
    await desk.settle(again)
    assert (await desk.stats(queue))["leases"] == 0


async def test_fenced_session_is_refused(desk: Desk, mute: Lane) -> None:
    queue = await desk.queue(visibility_timeout="1h")
    await desk.put(queue, *numbered(3))
    got = take(mute, queue)

    async def fenced() -> bool:
        await desk.domain.sweep()
        return await desk.domain.link.call("ZSCORE", desk.domain.keys.dying, "mute") is not None

    await until(fenced)
    answers = Answers()
    mute.messages.settle(mute.source, got, answers)
    with pytest.raises(ResponseError, match=r"^SESSION"):
        mute.send()
    with pytest.raises(ResponseError, match=r"^SESSION"):
        mute.control("beat")
    assert (await desk.stats(queue))["in_flight"] == 3


async def test_heartbeats_keep_the_session(desk: Desk) -> None:
    queue = await desk.queue(visibility_timeout=VISIBLE)
    await desk.put(queue, *numbered(3))
    got = await desk.take(queue)
    session = desk.pipe.session
    async with desk.another() as other:
        start = await desk.store.now_ms()
        while await desk.store.now_ms() < start + 4 * SHORT.session_timeout_ms:
            assert await other.domain.sweep() == 0
    assert desk.pipe.session == session
    await desk.settle(got)


async def test_every_queue_has_its_own_visibility_timeout(desk: Desk, mute: Lane) -> None:
    soon, late = (
        await desk.queue("soon", visibility_timeout="1s"),
        await desk.queue("late", visibility_timeout="1h"),
    )
    start = await desk.store.now_ms()
    for queue in (soon, late):
        await desk.put(queue, *numbered(2))
        take(mute, queue)

    async def back() -> bool:
        await desk.domain.sweep()
        return await desk.count(soon) == 2

    await until(back)
    assert await desk.store.now_ms() >= start + 990  # functions see a time that Valkey caches for some ms
    assert await desk.count(late) == 0
    assert not await swept(desk, "mute")
    await desk.store.catalogue.declare("late", QueueSpec(visibility_timeout="1s"), "test", replace=True)
    await until(lambda: swept(desk, "mute"))
    assert await desk.count(late) == 2


async def test_message_that_kills_consumers_becomes_a_dead_letter(desk: Desk, client: Client) -> None:
    queue = await desk.queue(visibility_timeout=VISIBLE, max_deliveries=2)
    await desk.put(queue, b"poison")
    for session in ("first", "second"):
        assert len(take(Lane(client, session, desk.pipe.epoch), queue)) == 1
        await until(lambda name=session: swept(desk, name))
    assert await desk.take(queue) == []
    (letter,) = [d async for d in desk.dead(queue).matching()]
    assert (letter.reason, letter.failed, letter.acquired) == ("max_deliveries", 2, 2)
    assert letter.error == "the edge that held it died"


async def test_death_of_a_sending_agent_is_no_failure(desk: Desk, client: Client) -> None:
    """Check that messages of a transmission queue survive the death of their holders (rqp_mca.md 3.1)."""
    remote = {"protocol": "rqp-mca", "queueId": 7}
    queue = await desk.queue(visibility_timeout=VISIBLE, max_deliveries=1, remote=remote)
    await desk.put(queue, b"precious")
    for session in ("first", "second"):
        assert len(take(Lane(client, session, desk.pipe.epoch), queue)) == 1
        await until(lambda name=session: swept(desk, name))
    (again,) = await desk.take(queue)
    assert (again.acquired, again.failed) == (3, 0)
    assert [d async for d in desk.dead(queue).matching()] == []


async def test_deleted_queue_does_not_block_the_sweep(desk: Desk, mute: Lane) -> None:
    gone, kept = [await desk.queue(name, visibility_timeout=VISIBLE) for name in ("gone", "kept")]
    for queue in (gone, kept):
        await desk.put(queue, *numbered(2))
        take(mute, queue)
    await desk.store.catalogue.delete(gone)
    await until(lambda: swept(desk, "mute"))
    assert await desk.count(kept) == 2


async def test_many_lease_batches_are_swept(desk: Desk, mute: Lane) -> None:
    queue = await desk.queue(visibility_timeout=VISIBLE)
    await desk.put(queue, *numbered(300))
    for _ in range(100):
        take(mute, queue, 3)
    await until(lambda: swept(desk, "mute"))
    assert bodies(await desk.take(queue)) == numbered(300)


async def test_closed_session_returns_messages_at_once(desk: Desk) -> None:
    queue = await desk.queue(visibility_timeout="1h")
    await desk.put(queue, *numbered(3))
    async with desk.another() as other:
        await other.take(queue, 2)
    assert await desk.domain.sweep() == 2
    assert bodies(await desk.take(queue)) == numbered(3)


async def test_closed_session_leaves_no_keys(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, b"a")
    async with desk.another() as other:
        await other.settle(await other.take(queue))
        keys = (desk.domain.keys.lane(other.pipe.session), desk.domain.keys.lots(other.pipe.session))
    assert [await desk.domain.link.call("EXISTS", key) for key in keys] == [0, 0]


async def test_process_that_lost_its_session_opens_another(desk: Desk) -> None:
    """Check that a call of a process that was stopped for too long is refused and never stored."""
    queue = await desk.queue(visibility_timeout=VISIBLE)
    await desk.put(queue, *numbered(2))
    async with desk.another(timing=Timing(beat_s=3600)) as slow:
        held = await slow.take(queue, 1)
        session = slow.pipe.session
        await until(lambda: swept(desk, session))
        with pytest.raises(StoreUnavailable, match="expired; nothing was stored"):
            await slow.publish(queue, b"x")
        assert slow.refusals["store_unavailable"] == 1
        await until(lambda: slow.pipe.session != session and slow.pipe.trouble is None)
        with pytest.raises(LeaseLost):
            await slow.settle(held)
        assert await slow.publish(queue, b"y") == []
    assert await desk.drain(queue) == [*numbered(2), b"y"]


async def test_store_outage_fences_no_session(desk: Desk, mute: Lane) -> None:
    """Check that sessions get one more timeout for a heartbeat after an outage."""
    long = desk.another(timing=Timing(session_timeout_ms=30_000, beat_s=10.0, sweep_s=5.0))
    keys = desk.domain.keys
    await long.domain.pipe.ready()
    await long.domain.sweep()
    now = await desk.store.now_ms()
    for looked in (now - 20_000, now - 3_600_000):
        await desk.domain.link.call("HSET", keys.state, "looked", looked, "up_since", 1)
        await desk.domain.link.call("ZADD", keys.sessions, now - 35_000, "mute")
        assert await long.domain.sweep() == 0
        assert await desk.domain.link.call("ZSCORE", keys.sessions, "mute") is not None


async def test_sessions_are_fenced_one_timeout_after_a_restart(own_server: Server) -> None:
    async with Desk(own_server, timing=SHORT) as desk:
        queue = await desk.queue(visibility_timeout=VISIBLE)
        await desk.put(queue, *numbered(2))
        with own_server.client() as client:
            take(Lane(client, "mute", desk.pipe.epoch), queue)
        await desk.domain.sweep()
        await passed(desk, SHORT.session_timeout_ms)
        own_server.kill9()
        own_server.restart()
        start = await desk.store.now_ms()
        assert not await swept(desk, "mute")
        await until(lambda: swept(desk, "mute"))
        assert await desk.store.now_ms() >= start + SHORT.session_timeout_ms
        assert await desk.count(queue) == 2


async def test_several_processes_sweep_the_same_sessions(desk: Desk, mute: Lane) -> None:
    queue = await desk.queue(visibility_timeout=VISIBLE)
    await desk.put(queue, *numbered(200))
    for _ in range(20):
        take(mute, queue, 10)
    others = [desk.another() for _ in range(3)]
    for other in others:
        await other.domain.pipe.ready()

    async def all_look() -> bool:
        await asyncio.gather(*(other.domain.sweep() for other in others), return_exceptions=True)
        return await desk.count(queue) == 200

    await until(all_look)
    assert bodies(await desk.take(queue)) == numbered(200)
    assert (await desk.stats(queue))["returned"] == 200


async def test_heartbeats_are_sent_without_calls(desk: Desk, mute: Lane) -> None:
    desk.store.start_serving()
    queue = await desk.queue(visibility_timeout=VISIBLE)
    await desk.put(queue, *numbered(2))
    take(mute, queue)

    async def back() -> bool:
        return await desk.count(queue) == 2

    await until(back)
    answers = Answers()
    mute.messages.publish(mute.source, queue, encode(b"x"), "t", answers)
    with pytest.raises(ResponseError, match=r"^SESSION"):
        mute.send()
