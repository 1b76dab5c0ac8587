"""One unsettled message would pin an entry of up to 4 KiB: old ones move out without what is settled (store.md)."""

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
    """Publishes `count` messages, settles all but those kept, and lets the upkeep move what is left."""
    lane.messages.publish(lane.source, queue, encode(*numbered(count)), "t", expect([]))
    got = taken(lane, queue, count)
    lane.messages.settle(lane.source, [d for i, d in enumerate(got) if i not in kept], expect(None))
    lane.send()
    lane.function("upkeep", queue.keys, -1000, 500, 0)
    return [got[i] for i in kept]


def test_what_a_dead_session_held_of_moved_entries_goes_back(client: Client, queue: Queue) -> None:
    dying, other = Lane(client, "dying"), Lane(client, "other")
    leave_stragglers(dying, queue, 3, 31, 64)
    assert client.call("HLEN", queue.keys[7]) == 2
    dying.die()
    assert other.fence() == ["dying"]
    assert other.sweep("dying", [queue]) == (3, 0, 0)
    assert bodies(taken(other, queue)) == [numbered(96)[i] for i in (3, 31, 64)]


def test_moved_messages_are_settled_returned_rejected_and_taken_like_others(
    client: Client, queue: Queue
) -> None:
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


def test_returned_ones_move_too(client: Client, queue: Queue) -> None:
    """They wait to be taken; what is settled around them need not."""
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


def test_young_entries_and_mostly_full_ones_stay(client: Client, queue: Queue) -> None:
    lane = Lane(client, "one")
    lane.messages.publish(lane.source, queue, encode(*numbered(64)), "t", expect([]))
    got = taken(lane, queue)
    lane.messages.settle(lane.source, [*got[:15], *got[32:60]], expect(None))
    lane.send()
    lane.function("upkeep", queue.keys, 60_000, 500, 0)
    assert client.call("HLEN", queue.keys[7]) == 0
    lane.function("upkeep", queue.keys, -1000, 500, 0)
    assert client.call("HLEN", queue.keys[7]) == 1


def test_an_entry_that_is_not_all_taken_stays(client: Client, queue: Queue) -> None:
    lane = Lane(client, "one")
    lane.messages.publish(lane.source, queue, encode(*numbered(32)), "t", expect([]))
    lane.messages.settle(lane.source, taken(lane, queue, 30), expect(None))
    lane.send()
    lane.function("upkeep", queue.keys, -1000, 500, 0)
    assert client.call("HLEN", queue.keys[7]) == 0
    assert bodies(taken(lane, queue)) == numbered(2, 30)


def test_however_many_there_are_all_are_moved_in_time(client: Client, queue: Queue) -> None:
    """Those that are already moved, or stay, must not keep the others from their turn."""
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
