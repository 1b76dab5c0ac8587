"""Compaction: unsettled messages of old, mostly settled entries are moved to new ones (store.md)."""

import pytest

from services.store import Delivery, Queue, QueueSpec
from tests.servers import Client
from tests.store.desk import bodies, encode, numbered
from tests.store.lane import Lane, begin
from tests.store.modelled import expect, singles


@pytest.fixture
def queue(client: Client) -> Queue:
    queue = Queue("orders", "q1", "main", "test", QueueSpec(ack_level="fsync"))
    begin(client, queue)
    return queue


def taken(lane: Lane, queue: Queue, want: int = 1000) -> list[Delivery]:
    found: list[Delivery] = []
    lane.messages.take(
        lane.source, queue, want, lambda got, _more: found.extend(one for d in got for one in singles(d))
    )
    lane.send()
    return found


def leave_stragglers(lane: Lane, queue: Queue, *kept: int, count: int = 96) -> list[Delivery]:
    """Publish `count` messages, settle all but some, and let upkeep compact the rest."""
    lane.messages.publish(lane.source, queue, encode(*numbered(count)), "t", expect([]))
    got = taken(lane, queue, count)
    lane.messages.settle(lane.source, [d for i, d in enumerate(got) if i not in kept], expect(None))
    lane.send()
    lane.function("upkeep", queue.keys, -1000, 500, 0)
    return [got[i] for i in kept]


def test_dead_sessions_compacted_messages_return(client: Client, queue: Queue) -> None:
    dying, other = Lane(client, "dying"), Lane(client, "other")
    leave_stragglers(dying, queue, 3, 31, 64)
    assert client.call("HLEN", queue.keys[7]) == 2
    dying.die()
    assert other.fence() == ["dying"]
    assert other.sweep("dying", [queue]) == (3, 0, 0)
    assert bodies(taken(other, queue)) == [numbered(96)[i] for i in (3, 31, 64)]


def test_compacted_messages_behave_as_others(client: Client, queue: Queue) -> None:
    lane, other = Lane(client, "one"), Lane(client, "other")
    held = leave_stragglers(lane, queue, 0, 5, 31, 32, 40, 95)
    lane.messages.settle(lane.source, [held[0]], expect(None))
    lane.messages.release(lane.source, held[1:3], failed=True, done=expect(None))
    lane.messages.release(lane.source, [held[3]], failed=False, to_end=True, done=expect(None))
    lane.messages.reject(lane.source, [held[4]], "refused", "", expect(None))
    lane.send()
    again = taken(other, queue)
    assert [(bodies([d]), d.acquired, d.failed) for d in again] == [
        ([b"m00005"], 2, 1),
        ([b"m00031"], 2, 1),
        ([b"m00032"], 2, 0),
    ]
    other.messages.settle(other.source, again, expect(None))
    other.send()
    lane.messages.settle(lane.source, [held[5]], expect(None))
    lane.send()
    assert left_over(client, queue) == []


def test_returned_messages_are_compacted(client: Client, queue: Queue) -> None:
    """Check that returned messages are compacted, and settled ones around them are dropped."""
    lane = Lane(client, "one")
    lane.messages.publish(lane.source, queue, encode(*numbered(32)), "t", expect([]))
    got = taken(lane, queue)
    lane.messages.release(lane.source, got[7:9], failed=False, done=expect(None))
    lane.messages.settle(lane.source, [*got[:7], *got[9:]], expect(None))
    lane.send()
    lane.function("upkeep", queue.keys, -1000, 500, 0)
    assert client.call("XLEN", queue.keys[0]) == 0
    peeked = client.call("FCALL_RO", "ps1_peek", 8, *queue.keys, 100, 1 << 20)
    assert peeked[5::8] == encode(b"m00007", b"m00008")
    again = taken(lane, queue)
    assert bodies(again) == [b"m00007", b"m00008"]
    lane.messages.settle(lane.source, again, expect(None))
    lane.send()
    assert left_over(client, queue) == []


def test_young_and_mostly_full_entries_are_not_compacted(client: Client, queue: Queue) -> None:
    lane = Lane(client, "one")
    lane.messages.publish(lane.source, queue, encode(*numbered(64)), "t", expect([]))
    got = taken(lane, queue)
    lane.messages.settle(lane.source, [*got[:15], *got[32:60]], expect(None))
    lane.send()
    lane.function("upkeep", queue.keys, 60_000, 500, 0)
    assert client.call("HLEN", queue.keys[7]) == 0
    lane.function("upkeep", queue.keys, -1000, 500, 0)
    assert client.call("HLEN", queue.keys[7]) == 1


def test_partly_taken_entry_is_not_compacted(client: Client, queue: Queue) -> None:
    lane = Lane(client, "one")
    lane.messages.publish(lane.source, queue, encode(*numbered(32)), "t", expect([]))
    lane.messages.settle(lane.source, taken(lane, queue, 30), expect(None))
    lane.send()
    lane.function("upkeep", queue.keys, -1000, 500, 0)
    assert client.call("HLEN", queue.keys[7]) == 0
    assert bodies(taken(lane, queue)) == numbered(2, 30)


def test_many_entries_are_compacted_in_steps(client: Client, queue: Queue) -> None:
    """Check that many entries are compacted in steps, so that others are not delayed."""
    lane = Lane(client, "one")
    entries = 1500
    for _ in range(entries // 30):
        lane.messages.publish(lane.source, queue, encode(*numbered(960)), "t", expect([]))
        got = taken(lane, queue, 960)
        lane.messages.settle(lane.source, [d for i, d in enumerate(got) if i % 32], expect(None))
        lane.send()
    steps = 0
    while client.call("HLEN", queue.keys[7]) < entries:
        lane.function("upkeep", queue.keys, -1000, 5000, 0)
        steps += 1
        assert steps < 100


def left_over(client: Client, queue: Queue) -> list[str]:
    return [key for key in queue.keys if not key.endswith((":s", ":q", ":d")) and client.call("EXISTS", key)]
