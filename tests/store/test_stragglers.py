"""One unsettled message would pin an entry of up to 4 KiB: old ones move out without what is settled (store.md)."""

from collections.abc import Iterator

import pytest

from services.store import Delivery, Queue, QueueSpec
from tests.servers import Client, Server
from tests.store.desk import bodies, encode, numbered
from tests.store.lane import Lane, begin
from tests.store.test_model import expect, singles


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    client = Client(server.port)
    yield client
    client.close()


@pytest.fixture
def queue(client: Client) -> Queue:
    queue = Queue("orders", "q1", "main", "test", QueueSpec())
    begin(client, queue)
    return queue


def taken(lane: Lane, queue: Queue, want: int = 1000) -> list[Delivery]:
    found: list[Delivery] = []
    lane.take(
        lane.source, queue, want, lambda got, _more: found.extend(one for d in got for one in singles(d))
    )
    lane.send()
    return found


def leave_stragglers(lane: Lane, queue: Queue, *kept: int, count: int = 96) -> list[Delivery]:
    """Publishes `count` messages, settles all but those kept, and lets the upkeep move what is left."""
    lane.publish(lane.source, queue, encode(*numbered(count)), "t", expect([]))
    got = taken(lane, queue, count)
    lane.settle(lane.source, [d for i, d in enumerate(got) if i not in kept], expect(None))
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
