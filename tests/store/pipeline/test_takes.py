"""Takes and settles: order, sharing and bounds (docs/store.md, tmq.md 6)."""

import asyncio

import pytest

from services.store import INTERNAL_CLIENT, QueueSpec, Source
from services.store.model.operations import TAKE_BYTES
from tests.store.desk import Desk, bodies, numbered


async def test_messages_are_delivered_once_in_order(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(100))
    got = await desk.take(queue, 40)
    assert bodies(got) == numbered(40)
    assert bodies(await desk.take(queue)) == numbered(60, 40)
    assert await desk.take(queue) == []
    assert await desk.count(queue) == 0


@pytest.mark.parametrize("want", [0, 1001])
async def test_take_of_invalid_size_raises(desk: Desk, want: int) -> None:
    queue = await desk.queue()
    with pytest.raises(ValueError, match="1 to 1000 messages"):
        await desk.take(queue, want)


async def test_the_cursor_stops_inside_entries(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(200))
    found = []
    for want in (1, 30, 1, 32, 33, 5, 64, 100):
        got = await desk.take(queue, want)
        found += bodies(got)
        await desk.settle(got)
    assert found == numbered(200)
    assert (await desk.stats(queue))["acked"] == 200


async def test_take_spans_entries(desk: Desk) -> None:
    queue = await desk.queue()
    for body in numbered(150):
        await desk.put(queue, body)
    assert bodies(await desk.take(queue, 120)) == numbered(120)
    assert bodies(await desk.take(queue)) == numbered(30, 120)


async def test_delivery_has_origin_and_time(desk: Desk) -> None:
    queue = await desk.queue()
    before = await desk.store.now_ms()
    await desk.publish(queue, b"a", origin="tmq 10.0.0.1")
    (got,) = await desk.take(queue)
    assert got.origin == "tmq 10.0.0.1"
    assert before <= got.enqueued_ms <= await desk.store.now_ms()
    assert (got.acquired, got.failed) == (1, 0)


async def test_takes_are_served_in_order(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(50))
    shares = await asyncio.gather(*(desk.taking(queue, 20, source=Source(INTERNAL_CLIENT)) for _ in range(4)))
    assert [bodies(share) for share in shares] == [numbered(20), numbered(20, 20), numbered(10, 40), []]
    for share in shares[:3]:
        await desk.settle(share)
    assert (await desk.stats(queue))["in_flight"] == 0


async def test_take_of_large_messages_reports_more(desk: Desk) -> None:
    """Check that a take of large messages is bounded, and that the next one returns the rest."""
    queue = await desk.queue()
    size = TAKE_BYTES // 4
    for _ in range(6):
        await desk.put(queue, b"x" * size)
    answers = []
    desk.pipe.messages.take(desk.source, queue, 6, lambda got, more: answers.append((len(got), more)))
    desk.pipe.messages.take(
        Source(INTERNAL_CLIENT), queue, 1, lambda got, more: answers.append((len(got), more))
    )
    await desk.count(queue)
    assert answers == [(4, True), (0, True)]
    desk.pipe.messages.take(desk.source, queue, 6, lambda got, more: answers.append((len(got), more)))
    await desk.count(queue)
    assert answers[-1] == (2, False)


async def test_take_of_large_returned_messages_is_bounded(desk: Desk) -> None:
    """Check that the bound holds for returned messages larger than the mean."""
    queue = await desk.queue()
    large = [b"%d" % number * (TAKE_BYTES // 4) for number in range(6)]
    await desk.put(queue, *large)
    taken = await desk.take(queue) + await desk.take(queue)
    await desk.put(queue, *numbered(2000))
    await desk.release(taken)
    first, second = await desk.take(queue), await desk.take(queue)
    assert bodies(first) == large[:4]
    assert bodies(second)[:3] == [*large[4:], *numbered(1)]
    await desk.settle([*first, *second])
    assert bodies(second)[2:] + await desk.drain(queue) == numbered(2000)
    assert await desk.reconcile(queue) == {"len": 0, "bytes": 0, "leased": 0}


async def test_settled_messages_are_removed_and_counted(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, b"", b"ab", b"cde")
    got = await desk.take(queue)
    assert (await desk.stats(queue))["in_flight"] == 3
    await desk.settle(got)
    stats = await desk.stats(queue)
    assert (stats["ready"], stats["in_flight"], stats["bytes"], stats["leases"]) == (0, 0, 0, 0)
    assert (stats["delivered"], stats["acked"], stats["bytes_out"]) == (3, 3, 5)


async def test_parts_of_an_entry_are_settled_by_their_holders(desk: Desk) -> None:
    """Check every bit of an entry's mask, including the 32nd, in any order."""
    queue = await desk.queue()
    await desk.put(queue, *numbered(32))
    (whole,) = await desk.take(queue)
    singles = []
    for _ in range(31):
        one, whole = whole.cut(1)
        singles.append(one)
    singles.append(whole)
    for index in (31, 0, 30, 15, *range(1, 15), *range(16, 30)):
        await desk.settle([singles[index]])
    stats = await desk.stats(queue)
    assert (stats["acked"], stats["bytes"], stats["leases"]) == (32, 0, 0)


async def test_session_may_hold_many_leases(desk: Desk) -> None:
    """Check that a session can settle more lease batches at once than Lua can unpack values."""
    queue = await desk.queue()
    many = 8100
    await desk.put(queue, *numbered(many))
    takes = []
    for _ in range(many):
        takes.append(desk.taking(queue, 1))
        desk.counting(queue)  # so that the next take is not one with this
    held = [(await take)[0] for take in takes]
    assert (await desk.stats(queue))["leases"] == many
    await asyncio.gather(*(desk.settling([d]) for d in held))
    stats = await desk.stats(queue)
    assert (stats["acked"], stats["leases"], stats["in_flight"]) == (many, 0, 0)


async def test_at_most_once_take_is_settled_first(desk: Desk) -> None:
    """Check that at-most-once messages are settled before they are returned (tmq.md 6.1)."""
    queue = await desk.queue(delivery="at-most-once")
    await desk.put(queue, *numbered(10))
    got = await desk.take(queue, 4)
    assert bodies(got) == numbered(4)
    stats = await desk.stats(queue)
    assert (stats["acked"], stats["in_flight"], stats["ready"]) == (4, 0, 6)


async def test_at_most_once_can_be_leased_explicitly(desk: Desk) -> None:
    """Check that a transaction's take leases at-most-once messages until it ends (tmq.md 5.4)."""
    queue = await desk.queue(delivery="at-most-once")
    await desk.put(queue, *numbered(3))
    got = await desk.take(queue, 2, leased=True)
    assert [d.settled for d in got] == [False]
    await desk.release(got)
    assert bodies(await desk.take(queue)) == numbered(3)


@pytest.mark.parametrize("first", ["at-most-once", "at-least-once"])
async def test_take_keeps_the_settings_of_its_request(desk: Desk, first: str) -> None:
    """Check that a delivery has the settings at its request if the document changes in between (tmq.md 6.1)."""
    queue = await desk.queue(delivery=first)
    await desk.put(queue, b"x")
    handle = await desk.store.catalogue.find("orders")
    taking = desk.taking(handle)
    other = "at-least-once" if first == "at-most-once" else "at-most-once"
    handle.follow(QueueSpec(delivery=other, ack_level="fsync"), handle.owner)
    (got,) = await taking
    assert got.settled is (first == "at-most-once")
    stats = await desk.stats(queue)
    assert (stats["acked"], stats["in_flight"]) == ((1, 0) if got.settled else (0, 1))


async def test_queue_handle_follows_its_document(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, b"a")
    handle = await desk.store.catalogue.find("orders")
    await desk.store.catalogue.declare("orders", QueueSpec(delivery="at-most-once"), "test", replace=True)
    assert (await desk.store.catalogue.find("orders")) is handle
    assert handle.at_most_once
    await desk.store.catalogue.declare("orders", QueueSpec(delivery="at-most-once"), "file", replace=True)
    assert (await desk.store.catalogue.find("orders")).owner == handle.owner == "file"
    await desk.take(handle)
    assert (await desk.stats(queue))["acked"] == 1
