"""Expiry of unsent messages in a transmission queue, as in any other (rqp_mca.md 3.6)."""

from __future__ import annotations

import pytest

from services.rqp.mca.leased_messages import LeasedMessages
from services.store import Delivery, QueueSpec
from services.store.model import records
from services.store.model.queues import Queue
from services.store.model.rqp_binding import Remote
from tests.live import until
from tests.rqp.conftest import Start
from tests.rqp.live import LiveEdge
from tests.rqp.mca.failing import sending_edge
from tests.rqp.mca.peer import McaPeer
from tests.servers import Server

REMOTE = Remote.model_validate({"protocol": "rqp-mca", "queueId": 7})


@pytest.fixture(autouse=True)
def looked_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.rqp.mca.prefetch.EXPIRY_S", 0.05)


async def test_undelivered_messages_expire(server: Server, start: Start) -> None:
    """Check that undelivered messages expire although they are prefetched: the store never expires leased ones."""
    edge = await start(server)
    queue = await edge.remote("away", spec={"messageTTL": "4s"})
    await edge.put(queue, *(b"%d" % number for number in range(100)))
    await until(lambda: edge.has_condition(queue, "no_receiver"))
    await until(lambda: edge.is_empty(queue))
    letters = await edge.dead(queue)
    assert [letter.body for letter in letters] == [b"%d" % number for number in range(100)]
    assert {(letter.reason, letter.failed) for letter in letters} == {("expired", 0)}
    await edge.check_nothing_is_left()


async def test_messages_in_flight_do_not_expire(server: Server, start: Start, peer: McaPeer) -> None:
    """Check that messages in flight do not expire.

    Later messages expire meanwhile; newer ones are sent.
    """
    edge = await sending_edge(server, start, peer, data_timeout_s=20.0)
    queue = await edge.remote("away", spec={"messageTTL": "1s"})
    await edge.put(queue, b"out", b"behind", b"behind too")
    call = await peer.reserved()
    assert await call.body() == b"out"
    await until(lambda: dead(edge, queue, 2))
    assert [letter.body for letter in await edge.dead(queue)] == [b"behind", b"behind too"]
    await edge.replace_remote("away", spec={"messageTTL": "1h"})
    await edge.put(queue, b"next")
    call.confirm()
    assert await call.body() == b"next"
    call.confirm()
    await until(lambda: edge.is_empty(queue))
    assert (await edge.stats(queue))["acked"] == 2
    await edge.check_nothing_is_left()


async def dead(edge: LiveEdge, queue: Queue, number: int) -> bool:
    return bool((await edge.stats(queue))["dead"] == number)


# --- the prefetch buffer


def delivery(at_ms: int, *bodies: bytes, **attributes: bool) -> Delivery:
    queue = Queue("away", "q1", "main", "test", QueueSpec(ack_level="fsync"))
    blob = b"".join(records.encode(body, attributes) for body in bodies)
    return Delivery(queue, b"1", b"1-1", len(bodies), 0, len(bodies), blob, b"%d test" % at_ms, b"")


def test_expired_messages_are_taken_from_the_middle() -> None:
    """Check that expired messages are removed also from the middle of a batch; others keep order and content."""
    line = LeasedMessages(REMOTE)
    line.append(delivery(1000, b"a", b"bb", b"ccc"))
    line.append(delivery(1000, b"dddd", certain=False))
    line.append(delivery(2000, b"e"))
    line.append(delivery(1000, b"f"))
    assert line.take_older(0, 999) == []
    assert line.take_older(4, 1999) == []
    old = line.take_older(2, 1999)
    assert [record[4:] for record in old[0].records()] == [b"ccc"]
    assert [each.mask for each in old] == [0b100, 0b1]
    assert [record[4:] for record in line.records(0, 9)] == [b"a", b"bb", b"e", b"f"]
    assert (len(line), line.bytes, line.runs(0)) == (4, 16 + 5, [(True, 4)])
    assert [each.mask for each in line.remove(4)] == [0b11, 0b1, 0b1]
    assert line.take_older(0, 9999) == []
