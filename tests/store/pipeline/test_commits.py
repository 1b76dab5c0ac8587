"""Commits: settles and publishes over several queues, all or nothing, once (tmq.md 5.3)."""

from dataclasses import dataclass

import pytest

from services.store import CommitPart, Delivery, Queue, QueueSpec
from services.store.model.errors import (
    BatchDiffers,
    DomainMismatch,
    LeaseLost,
    QueueFull,
    QueuePaused,
    QueueReserved,
    QueueUnknown,
    StoreError,
)
from tests.store.desk import Desk, bodies, encode, numbered
from tests.store.pipeline.test_returns import singles


@dataclass
class Two:
    """A transaction that settles three messages of each of two queues, and publishes two to each."""

    desk: Desk
    one: Queue
    two: Queue
    held_one: list[Delivery]
    held_two: list[Delivery]

    def parts(self, *, spoilt: list[Delivery] | None = None) -> list[CommitPart]:
        return [
            CommitPart(self.one, self.held_one, encode(b"a", b"b"), "tmq 1"),
            CommitPart(self.two, [*self.held_two, *(spoilt or [])], encode(b"c", b"d"), "tmq 1"),
        ]

    async def watched_stats(self) -> list[dict[str, int]]:
        names = ("ready", "in_flight", "acked", "added", "bytes", "returned_waiting", "dead")
        stats = [await self.desk.stats(queue) for queue in (self.one, self.two)]
        return [{name: s[name] for name in names} for s in stats]


@pytest.fixture
async def two(desk: Desk) -> Two:
    one, other = await desk.queue("one"), await desk.queue("two")
    for queue in (one, other):
        await desk.put(queue, *numbered(5))
    return Two(desk, one, other, singles(await desk.take(one, 3)), singles(await desk.take(other, 3)))


async def doomed(two: Two, wanted: type[StoreError], parts: list[CommitPart]) -> None:
    """Check that the commit is refused and changes nothing."""
    before, refused = await two.watched_stats(), two.desk.refusals[wanted.reason]
    with pytest.raises(wanted):
        await two.desk.commit("t1", *parts)
    assert await two.watched_stats() == before
    assert two.desk.refusals[wanted.reason] == refused + 1


async def test_commit_is_atomic(two: Two) -> None:
    await two.desk.commit("t1", *two.parts())
    assert [s["acked"] for s in await two.watched_stats()] == [3, 3]
    assert await two.desk.drain(two.one) == [*numbered(2, 3), b"a", b"b"]
    assert await two.desk.drain(two.two) == [*numbered(2, 3), b"c", b"d"]
    assert [s["bytes"] for s in await two.watched_stats()] == [0, 0]


async def test_commit_with_another_digest_is_refused(two: Two) -> None:
    await two.desk.commit("batch", CommitPart(two.one, [], encode(b"x"), "t"), digest="d1")
    await two.desk.commit("batch", CommitPart(two.one, [], encode(b"x"), "t"), digest="d1")
    with pytest.raises(BatchDiffers):
        await two.desk.commit("batch", CommitPart(two.one, [], encode(b"y"), "t"), digest="d2")
    await two.desk.commit("batch", CommitPart(two.one, [], encode(b"y"), "t"))  # without a digest
    assert (await two.desk.drain(two.one))[-1:] == [b"x"]
    assert (await two.desk.stats(two.one))["added"] == 6


async def test_identifier_is_applied_once(two: Two) -> None:
    await two.desk.commit("t1", *two.parts())
    before = await two.watched_stats()
    await two.desk.commit("t1", *two.parts())
    async with two.desk.another() as other:
        await other.commit("t1", *two.parts())
    assert await two.watched_stats() == before
    assert (await two.desk.stats(two.one))["duplicates"] == 2


async def test_refused_identifier_can_be_retried(two: Two) -> None:
    await two.desk.store.catalogue.declare("two", QueueSpec(max_length=5), "test", replace=True)
    parts = [two.parts()[0], CommitPart(two.two, [], encode(b"c", b"d"), "tmq 1")]
    with pytest.raises(QueueFull):
        await two.desk.commit("t1", *parts)
    await two.desk.store.catalogue.declare("two", QueueSpec(max_length=7), "test", replace=True)
    await two.desk.commit("t1", *parts)
    assert [s["added"] for s in await two.watched_stats()] == [7, 7]


async def test_lost_lease_refuses_the_commit(two: Two) -> None:
    async with two.desk.another() as other:
        await doomed(two, LeaseLost, two.parts(spoilt=await other.take(two.two, 1)))


async def test_settled_lease_refuses_the_commit(two: Two) -> None:
    await two.desk.settle(two.held_two[:1])
    await doomed(two, LeaseLost, two.parts())


async def test_repeated_message_refuses_the_commit(two: Two) -> None:
    await doomed(two, LeaseLost, [*two.parts(), CommitPart(two.two, two.held_two[:1], [], "tmq 1")])
    await doomed(two, LeaseLost, two.parts(spoilt=two.held_two[:1]))


async def test_deleted_queue_refuses_the_commit(two: Two) -> None:
    await two.desk.store.catalogue.delete(two.two)
    before = (await two.desk.stats(two.one))["in_flight"]
    with pytest.raises(QueueUnknown):
        await two.desk.commit("t1", *two.parts())
    assert (await two.desk.stats(two.one))["in_flight"] == before
    newer = await two.desk.queue("two")
    with pytest.raises(QueueUnknown):  # 5.6: the name exists again, but as another queue
        await two.desk.commit("t1", *two.parts())
    assert await two.desk.count(newer) == 0


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"max_length": 3}, QueueFull),
        ({"max_bytes": 13}, QueueFull),
        ({"paused": True}, QueuePaused),
        ({"max_length": 1, "overflow": "dead_letter_oldest"}, QueueFull),
    ],
)
async def test_full_queue_refuses_the_commit(
    two: Two, spec: dict[str, object], wanted: type[StoreError]
) -> None:
    await two.desk.store.catalogue.declare("two", QueueSpec(**spec), "test", replace=True)
    await doomed(two, wanted, two.parts())


async def test_reserved_queue_refuses_the_commit(two: Two) -> None:
    await two.desk.domain.claims.reserve(two.two, "mca 7", 60_000)
    await doomed(two, QueueReserved, two.parts())


async def test_paused_queue_can_be_settled(two: Two) -> None:
    await two.desk.store.catalogue.declare("two", QueueSpec(paused=True), "test", replace=True)
    await two.desk.commit("t1", two.parts()[0], CommitPart(two.two, two.held_two, [], "tmq 1"))
    assert [s["acked"] for s in await two.watched_stats()] == [3, 3]


async def test_settled_messages_make_room_for_published_ones(two: Two) -> None:
    await two.desk.store.catalogue.declare("one", QueueSpec(max_length=5, max_bytes=29), "test", replace=True)
    await two.desk.commit("t1", CommitPart(two.one, two.held_one, encode(b"1", b"2", b"3" * 13), "tmq 1"))
    assert await two.desk.drain(two.one) == [*numbered(2, 3), b"1", b"2", b"3" * 13]


async def test_parts_for_one_queue_count_together(two: Two) -> None:
    await two.desk.store.catalogue.declare("one", QueueSpec(max_length=6), "test", replace=True)
    await doomed(
        two,
        QueueFull,
        [CommitPart(two.one, [], encode(b"x"), "t"), CommitPart(two.one, [], encode(b"y"), "t")],
    )
    await two.desk.commit(
        "t2", CommitPart(two.one, [], encode(b"x"), "t"), CommitPart(two.one, two.held_one[:0], [], "t")
    )


async def test_oldest_messages_make_way_for_a_commit(two: Two) -> None:
    spec = QueueSpec(max_length=5, overflow="dead_letter_oldest")
    await two.desk.store.catalogue.declare("one", spec, "test", replace=True)
    await two.desk.commit("t1", CommitPart(two.one, two.held_one[:1], encode(b"x", b"y", b"z"), "t"))
    assert bodies(await two.desk.domain.peek(two.one, 10)) == [b"x", b"y", b"z"]
    assert [d.body async for d in two.desk.dead(two.one).matching()] == numbered(2, 3)
    assert (await two.watched_stats())[0]["in_flight"] == 2


async def test_returned_and_redelivered_messages_can_be_settled(two: Two) -> None:
    await two.desk.release(two.held_one, failed=True)
    again = await two.desk.take(two.one, 4)
    await two.desk.commit(
        "t1", CommitPart(two.one, again, [], "t"), CommitPart(two.two, two.held_two, [], "t")
    )
    stats = await two.desk.stats(two.one)
    assert (stats["acked"], stats["ready"], stats["in_flight"], stats["leases"]) == (4, 1, 0, 0)


async def test_returned_lease_refuses_the_commit(two: Two) -> None:
    """Check that a commit is refused if a message was returned and leased to another process."""
    await two.desk.release(two.held_two[1:2])
    async with two.desk.another() as other:
        again = await other.take(two.two, 1)
        await doomed(two, LeaseLost, two.parts())
        await other.settle(again)


async def test_ten_thousand_messages_in_one_commit(desk: Desk) -> None:
    """Check a commit with more values than Lua can unpack at once."""
    queue, target = await desk.queue("one"), await desk.queue("two")
    await desk.put(queue, *numbered(5000))
    held: list[Delivery] = []
    while got := await desk.take(queue):
        held += got
    await desk.commit(
        "big", CommitPart(queue, held, [], "t"), CommitPart(target, [], encode(*numbered(5000)), "t")
    )
    assert (await desk.stats(queue))["acked"] == 5000
    assert await desk.count(target) == 5000


async def test_commit_across_domains_raises(two: Two) -> None:
    """Check that a commit across domains raises DomainMismatch (tmq.md 5.5)."""
    other, _ = await two.desk.store.catalogue.declare("far", QueueSpec(domain="other"), "test")
    with pytest.raises(DomainMismatch):
        await two.desk.commit("t1", *two.parts(), CommitPart(other, [], encode(b"x"), "t"))


async def test_commit_follows_earlier_operations_of_its_connection(desk: Desk) -> None:
    queue = await desk.queue(max_length=4)
    await desk.put(queue, *numbered(3))
    got = singles(await desk.take(queue))
    settled = desk.settling(got[:2])
    published = desk.publishing(queue, b"x")
    await desk.commit("t1", CommitPart(queue, got[2:], encode(b"y", b"z"), "t"))
    after = desk.publishing(queue, b"w")
    await settled
    assert (await published, await after) == ([], [])
    assert await desk.drain(queue) == [b"x", b"y", b"z", b"w"]
