"""Verbs that are awaited, and waiting for messages without asking all the time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from services.store import CommitPart, Outcome, Queue, QueueSpec
from services.store.model.errors import BatchDiffers, QueueFull, QueueUnknown
from services.store.model.identities import JournalNumber, TransactionId
from services.store.pipeline.async_client import AsyncClient
from services.store.processes.queue_notifications import Wake
from tests.servers import Server
from tests.store.desk import Desk, bodies, encode, until


async def test_what_is_asked_is_answered_or_raised(desk: Desk) -> None:
    queue, client = await desk.queue(max_length=2), AsyncClient(desk.pipe)
    assert await client.publish(queue, encode(b"1", b"2"), "test") == []
    ((index, why),) = await client.publish(queue, encode(b"3"), "test")
    assert (index, type(why)) == (0, QueueFull)
    taken = await client.take(queue, 10)
    assert bodies(taken) == [b"1", b"2"]
    await client.release(taken)
    await client.settle(await client.take(queue, 1))
    await client.commit("t", [CommitPart(queue, [], encode(b"4"), "test")])
    assert bodies(await client.take(queue, 10)) == [b"2", b"4"]
    await desk.store.catalogue.delete(queue)
    with pytest.raises(QueueUnknown):
        await client.take(queue, 1)


async def test_what_agents_ask(desk: Desk) -> None:
    """Notes, moves to the end, dead letters, and what is put in once (rqp_cast.md 4.2, 5.4; sysv.md)."""
    queue, client = await desk.queue(), AsyncClient(desk.pipe)
    (record,) = encode(b"1")
    assert (
        await client.publish_once(TransactionId("cast 1", 60_000, "a"), queue, record, "test")
        is Outcome.STORED
    )
    assert (
        await client.publish_once(TransactionId("cast 1", 60_000, "a"), queue, record, "test")
        is Outcome.AGAIN
    )
    with pytest.raises(BatchDiffers):
        await client.publish_once(TransactionId("cast 1", 60_000, "b"), queue, record, "test")
    await client.publish(queue, encode(b"2"), "test")
    assert await client.publish_once(JournalNumber("host", 1), queue, *encode(b"3"), "test") is Outcome.STORED
    assert await client.publish_once(JournalNumber("host", 1), queue, *encode(b"3"), "test") is Outcome.AGAIN
    (first,) = await client.take(queue, 1)
    await client.note(first, "id=1")
    await client.release([first], failed=True, to_end=True, error="nobody answers")
    got = await client.take(queue, 10)
    assert [(d.note, d.failed, bodies([d])) for d in got] == [
        ("", 0, [b"2"]),
        ("", 0, [b"3"]),
        ("id=1", 1, [b"1"]),
    ]
    await client.reject(got[2:], "unconfirmed", "20 attempts")
    (letter,) = [letter async for letter in desk.dead(queue).matching()]
    assert (letter.reason, letter.error, letter.note) == ("unconfirmed", "20 attempts", "id=1")


async def test_what_nobody_waits_for_any_more_goes_back(desk: Desk) -> None:
    queue, client = await desk.queue(), AsyncClient(desk.pipe)
    await desk.put(queue, b"x")
    asking = asyncio.create_task(client.take(queue, 1))
    await asyncio.sleep(0)  # it has asked, and cannot have its answer yet
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    returned = await until(lambda: _returned(desk, queue))
    assert returned["ready"] == 1


async def test_what_came_in_the_turn_of_the_cancellation_goes_back(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal and the answer may be read from their sockets together: the task never sees what it has got."""
    queue, client = await desk.queue(), AsyncClient(desk.pipe)
    await desk.put(queue, b"x")
    take = desk.pipe.messages.take

    def cancelled_at_the_answer(source: Any, queue: Queue, want: int, done: Callable[..., None]) -> None:
        def answered(got: Any, more: bool) -> None:
            done(got, more)
            asking.cancel()

        take(source, queue, want, answered)

    monkeypatch.setattr(desk.pipe.messages, "take", cancelled_at_the_answer)
    asking = asyncio.create_task(client.take(queue, 1))
    with pytest.raises(asyncio.CancelledError):
        await asking
    returned = await until(lambda: _returned(desk, queue))
    assert returned["ready"] == 1


async def _returned(desk: Desk, queue: object) -> dict[str, int] | None:
    stats = await desk.stats(queue)  # type: ignore[arg-type]
    return stats if stats["returned"] == 1 else None


async def test_waiting_ends_with_the_first_message(desk: Desk) -> None:
    queue, other = await desk.queue(), await desk.queue("other")
    loop = asyncio.get_running_loop()
    async with Wake(desk.store.connector, queue.domain) as wake:
        await desk.put(other, b"not this one")
        waiting = asyncio.create_task(wake.wait(queue, 60.0))
        began = loop.time()
        await desk.put(queue, b"x")
        await waiting
        assert loop.time() - began < 0.9  # told, not found by the poll


async def test_waiting_is_bounded_by_the_poll_and_by_its_time(desk: Desk) -> None:
    queue = await desk.queue()
    loop = asyncio.get_running_loop()
    async with Wake(desk.store.connector, queue.domain) as wake:
        for timeout_s, expected_s in ((0.2, 0.2), (60.0, 1.0)):
            began = loop.time()
            await wake.wait(queue, timeout_s)
            assert loop.time() - began >= expected_s - 0.01


async def test_waiting_survives_the_store(own_server: Server) -> None:
    async with Desk(own_server) as desk:
        queue, _ = await desk.store.catalogue.declare("orders", QueueSpec(), "test")
        async with Wake(desk.store.connector, queue.domain) as wake:
            own_server.kill9()
            await wake.wait(queue, 60.0)
            await wake.wait(queue, 60.0)
            own_server.restart()
