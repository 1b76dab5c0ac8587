"""Tracking a message until it leaves its queue (docs/store.md, Delivery tracking)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from services.store import CommitPart, Queue, QueueSpec, StoreError
from services.store.deadletters.delivery_tracking import DeliveryResult, DeliveryStatus, DeliveryTracker
from services.store.model.errors import MessageTooLarge, OutcomeUnknown, QueueFull, QueuePaused, QueueUnknown
from services.store.model.identities import DeliveryToken
from tests.servers import Client
from tests.store.desk import Desk, bodies, encode, numbered, until
from tests.store.lane import Lane, begin
from tests.store.pipeline.test_replays import Answers

WAITS = DeliveryResult(DeliveryStatus.WAITS)


async def watching(desk: Desk, queue: Queue, body: bytes = b"watched") -> DeliveryTracker:
    watch = DeliveryTracker(desk.domain, queue)
    (record,) = encode(body)
    await watch.put(record, "test 1")
    return watch


async def watched_fields(desk: Desk, queue: Queue) -> tuple[int, int]:
    """Return the number of tracked messages by the queue's counter and by its fields."""
    fields = await desk.domain.link.call("HGETALL", queue.keys[1])
    found = dict(zip(fields[::2], fields[1::2], strict=True))
    return int(found.get(b"watched", 0)), sum(name.startswith(b"w:") for name in found)


async def test_status_is_waits_until_the_message_is_settled(desk: Desk) -> None:
    queue = await desk.queue()
    watch = await watching(desk, queue)
    assert await watch.poll() == WAITS
    (delivery,) = await desk.take(queue)
    assert bodies([delivery]) == [b"watched"]
    assert await watch.poll() == WAITS, "taken is not settled"
    await desk.settle([delivery])
    assert await watch.poll() == DeliveryResult(DeliveryStatus.SETTLED, session=desk.pipe.session)
    assert await watched_fields(desk, queue) == (0, 0)


async def test_other_messages_do_not_affect_the_status(desk: Desk) -> None:
    """Check the status among whole runs in one entry, single messages, and other tracked messages."""
    queue = await desk.queue()
    await desk.put(queue, *numbered(40))
    first, second = await watching(desk, queue, b"one"), await watching(desk, queue, b"two")
    await desk.put(queue, b"behind")
    got = await desk.take(queue)
    of = {body: delivery for delivery in got for body in bodies([delivery])}
    await desk.settle([delivery for delivery in got if delivery not in (of[b"one"], of[b"two"])])
    assert await first.poll() == WAITS
    await desk.settle([of[b"two"]])
    assert (await first.poll(), (await second.poll()).status) == (WAITS, DeliveryStatus.SETTLED)
    await desk.settle([of[b"one"]])
    assert (await first.poll()).status is DeliveryStatus.SETTLED


async def test_tracked_message_is_alone_in_its_entry(desk: Desk) -> None:
    queue = await desk.queue()
    watches = [DeliveryTracker(desk.domain, queue) for _ in range(20)]
    records = encode(*numbered(20))
    puts = [watch.put(record, "test 1") for watch, record in zip(watches, records, strict=True)]
    await asyncio.gather(*puts, desk.put(queue, *numbered(50, 100)))
    got = await desk.take(queue)
    singles = {body: d for d in got if d.size == 1 for body in bodies([d])}
    for number, watch in enumerate(watches):
        assert await watch.poll() == WAITS
        await desk.settle([singles[b"m%05d" % number]])
        assert (await watch.poll()).status is DeliveryStatus.SETTLED


async def test_tracking_survives_returns_and_moves_to_the_end(desk: Desk) -> None:
    """Check that tracking survives returns and moves to the end of the queue (rqp_cast.md 4.1)."""
    queue = await desk.queue()
    watch = await watching(desk, queue)
    await desk.put(queue, *numbered(3))
    for how in ({}, {"to_end": True}, {"failed": True}, {"to_end": True}, {"to_end": True}):
        (delivery,) = [d for d in await desk.take(queue) if bodies([d]) == [b"watched"]]
        await desk.release([delivery], **how)
        assert await watch.poll() == WAITS
        assert await watched_fields(desk, queue) == (1, 1)
        others = await desk.take(queue)
        await desk.release([d for d in others if d.lot != delivery.lot])
    await desk.drain(queue)
    assert (await watch.poll()).status is DeliveryStatus.SETTLED


async def test_status_of_a_dead_message_has_its_id_and_reason(desk: Desk) -> None:
    queue = await desk.queue()
    watch = await watching(desk, queue)
    await desk.reject(await desk.take(queue), "no_receiver", "no machine has queue 7")
    found = await watch.poll()
    assert (found.status, found.reason) == (DeliveryStatus.DEAD, "no_receiver")
    letter = await desk.dead(queue).find(found.dead_letter_id)
    assert letter is not None
    assert (letter.body, letter.error) == (b"watched", "no machine has queue 7")
    await desk.dead(queue).redrive([found.dead_letter_id])
    await desk.drain(queue)
    assert await watch.poll() == found, "what is brought back later is another message"


async def test_failures_expiry_and_eviction_end_the_tracking(desk: Desk) -> None:
    failing = await desk.queue("failing", max_deliveries=1)
    watch = await watching(desk, failing)
    await desk.release(await desk.take(failing), failed=True)
    assert (await watch.poll()).reason == "max_deliveries"

    old = await desk.queue("old", message_ttl="1ms")
    watch = await watching(desk, old)
    await asyncio.sleep(0.01)
    assert await desk.take(old) == []
    assert (await watch.poll()).reason == "expired"

    full = await desk.queue("full", max_length=1, overflow="dead_letter_oldest")
    watch = await watching(desk, full)
    second = await watching(desk, full, b"in its place")
    assert ((await watch.poll()).reason, await second.poll()) == ("rejected_full", WAITS)


async def test_commit_settles_a_tracked_message(desk: Desk) -> None:
    queue = await desk.queue()
    watch = await watching(desk, queue)
    await desk.commit("t1", CommitPart(queue, await desk.take(queue), [], "t"))
    assert (await watch.poll()).status is DeliveryStatus.SETTLED


async def test_sweep_keeps_the_tracking(desk: Desk) -> None:
    """Check that a swept message is still tracked when its next consumer settles it."""
    queue = await desk.queue(visibility_timeout="1ms")
    watch = await watching(desk, queue)
    async with desk.another() as other:
        assert len(await other.take(queue)) == 1
    await until(lambda: _swept(desk, queue))
    assert await watch.poll() == WAITS
    await desk.drain(queue)
    assert await watch.poll() == DeliveryResult(DeliveryStatus.SETTLED, session=desk.pipe.session)


async def _swept(desk: Desk, queue: Queue) -> bool:
    await desk.domain.sweep()
    return bool((await desk.stats(queue))["ready"])


REFUSED: list[tuple[dict[str, Any], type[StoreError]]] = [
    ({"max_length": 1}, QueueFull),
    ({"paused": True}, QueuePaused),
    ({"remote": {"protocol": "rqp-cast", "key": 1, "maxMessageBytes": 3}}, MessageTooLarge),
]


@pytest.mark.parametrize(("spec", "wanted"), REFUSED)
async def test_refused_put_is_not_tracked(desk: Desk, spec: dict[str, Any], wanted: type[StoreError]) -> None:
    queue = await desk.queue()
    await desk.put(queue, b"in the way")
    await desk.store.catalogue.declare("orders", QueueSpec.model_validate(spec), "test", replace=True)
    with pytest.raises(wanted):
        await watching(desk, queue)
    assert await watched_fields(desk, queue) == (0, 0)
    assert await desk.domain.link.call("KEYS", desk.domain.keys.fate("*")) == []


async def test_deleted_queue_and_expired_result_raise(desk: Desk) -> None:
    queue = await desk.queue()
    watch = await watching(desk, queue)
    await watch.close()
    with pytest.raises(OutcomeUnknown):
        await watch.poll()
    await desk.drain(queue)
    assert await desk.domain.link.call("KEYS", desk.domain.keys.fate("*")) == [], (
        "no session tracks the message any more"
    )
    assert await watched_fields(desk, queue) == (0, 0)
    await desk.store.catalogue.delete(queue)
    with pytest.raises(QueueUnknown):
        await watching(desk, queue)


async def test_polling_extends_the_tracking(desk: Desk) -> None:
    queue = await desk.queue()
    watch = await watching(desk, queue)
    (key,) = await desk.domain.link.call("KEYS", desk.domain.keys.fate("*"))
    await desk.domain.link.call("PEXPIRE", key, 10_000)
    await watch.poll()
    assert await desk.domain.link.call("PTTL", key) > 290_000
    await desk.drain(queue)
    assert await desk.domain.link.call("PTTL", key) > 0, "its state expires"


async def test_reconciliation_counts_a_tracked_message_once(desk: Desk) -> None:
    """Check that a tracked message is counted like any other."""
    queue = await desk.queue()
    await desk.put(queue, *numbered(5))
    watch = await watching(desk, queue)
    await desk.put(queue, *numbered(5))
    assert not any((await desk.reconcile(queue)).values())
    assert len(await desk.drain(queue)) == 11
    assert not any((await desk.reconcile(queue)).values())
    assert (await desk.stats(queue))["added"] == 11
    assert (await watch.poll()).status is DeliveryStatus.SETTLED


def test_repeated_call_puts_a_tracked_message_once(client: Client) -> None:
    """Check that a call repeated after a lost answer, with the same sequence, stores the message once."""
    queue = Queue("orders", "q1", "main", "test", QueueSpec(ack_level="fsync"))
    begin(client, queue)
    lane, answers = Lane(client, "test-1"), Answers()
    (record,) = encode(b"watched")
    lane.idempotent.publish(lane.source, DeliveryToken("t", 60_000), queue, record, "test 1", answers)
    replies = lane.send()
    assert lane.again() == replies
    assert client.call("XLEN", queue.keys[0]) == 1
    assert client.call("HGET", queue.keys[1], "watched") == b"1"
    assert client.call("GET", lane.keys.fate("t")) == b"waits"
