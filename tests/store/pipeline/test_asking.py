"""Awaitable operations (`AsyncClient`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from services.store import CommitPart, Outcome, Queue
from services.store.model.errors import BatchDiffers, QueueFull, QueueUnknown
from services.store.model.identities import JournalNumber, TransactionId
from services.store.pipeline.async_client import AsyncClient
from tests.store.desk import Desk, bodies, encode, until


async def test_operations_return_or_raise(desk: Desk) -> None:
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


async def test_operations_of_agents(desk: Desk) -> None:
    """Check notes, returns to the end, dead letters and idempotent publishes (rqp_cast.md 4.2, 5.4; sysv.md)."""
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
    await client.release([first], failed=True, to_end=True, error="no answer")
    got = await client.take(queue, 10)
    assert [(d.note, d.failed, bodies([d])) for d in got] == [
        ("", 0, [b"2"]),
        ("", 0, [b"3"]),
        ("id=1", 1, [b"1"]),
    ]
    await client.reject(got[2:], "unconfirmed", "20 attempts")
    (letter,) = [letter async for letter in desk.dead(queue).matching()]
    assert (letter.reason, letter.error, letter.note) == ("unconfirmed", "20 attempts", "id=1")


async def test_messages_of_a_cancelled_take_are_returned(desk: Desk) -> None:
    queue, client = await desk.queue(), AsyncClient(desk.pipe)
    await desk.put(queue, b"x")
    asking = asyncio.create_task(client.take(queue, 1))
    await asyncio.sleep(0)  # it has asked, and cannot have its answer yet
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    returned = await until(lambda: _returned(desk, queue))
    assert returned["ready"] == 1


async def test_messages_that_arrive_during_cancellation_are_returned(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that messages whose take is cancelled as the answer arrives are returned."""
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
