"""Handling of messages by a receiving MCA (rqp_mca.md 2.1, 1.2, 1.5)."""

from __future__ import annotations

import asyncio

import pytest

from protos.rqp_mca import Profile, encode_available_request
from tests.live import until
from tests.rqp.conftest import NewServer, Start
from tests.rqp.live import LiveEdge
from tests.rqp.mca.client import UNRELIABLE, Client
from tests.servers import Server

PROFILES = list(Profile)


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_reliable_message_is_put_in_and_confirmed_in_its_profile(
    edge: LiveEdge, profile: Profile
) -> None:
    """Check that a RELIABLE message is put in and confirmed in its profile (1.2, 2.1)."""
    queue = await edge.numbered("orders", 7)
    client = await edge.client(profile)
    await client.put(7, b"hello", b"", b"\0\xff")
    assert await edge.bodies(queue) == [b"hello", b"", b"\0\xff"]
    (delivery,) = await edge.tools.get_domain("main").peek(queue, 1)
    assert delivery.origin == "mca 127.0.0.1"


@pytest.mark.parametrize("profile", PROFILES)
async def test_one_profile_for_the_whole_connection(edge: LiveEdge, profile: Profile) -> None:
    """Check that the first octet determines the profile of a connection and all its answers (1.2)."""
    queue = await edge.numbered("orders", 0xFFFF_FFFF)
    client = await edge.client(profile)
    await edge.numbered("end", 0)
    assert await client.is_available(0xFFFF_FFFF, 0)
    await client.request(0xFFFF_FFFF)
    await client.put(0xFFFF_FFFF, b"hello")
    assert await edge.bodies(queue) == [b"hello"]


async def test_an_unreliable_message_is_put_in_and_not_confirmed(edge: LiveEdge, client: Client) -> None:
    """Check that an UNRELIABLE message is put in and not confirmed (2.1)."""
    queue = await edge.numbered("orders", 7)
    await client.send(client.data(7, b"one", b"two", kind=UNRELIABLE), client.data(7, b"three"))
    assert await client.read(1) == client.confirm
    client.fin()
    assert await client.rest() == b""
    assert await edge.bodies(queue) == [b"one", b"two", b"three"]


async def test_confirms_keep_the_order_of_the_data(edge: LiveEdge, client: Client) -> None:
    """Check that confirms keep the order of the data (2.1).

    This holds across queues, one of which has to be looked up first, and across requests.
    """
    first, second = await edge.numbered("first", 1), await edge.numbered("second", 2)
    await client.send(
        client.data(1, b"a", b"b"),
        client.data(2, b"c"),
        encode_available_request(Profile.PACKED, 1),
        client.data(1, b"d"),
    )
    assert await client.read(9) == bytes.fromhex("202020 4000000010 20")
    assert await edge.bodies(first) == [b"a", b"b", b"d"]
    assert await edge.bodies(second) == [b"c"]


async def test_messages_may_be_cut_anywhere(edge: LiveEdge, client: Client) -> None:
    """Check that messages may be cut anywhere: TCP segments do not matter (1.1)."""
    queue = await edge.numbered("orders", 7)
    bodies = [bytes([size]) * size for size in range(40)]
    for octet in client.data(7, *bodies):
        await client.send(bytes([octet]))
    assert await client.read(len(bodies)) == client.confirm * len(bodies)
    assert await edge.bodies(queue) == bodies


async def test_long_runs_and_large_messages(edge: LiveEdge, client: Client) -> None:
    """Check runs longer than the limit of 1,000, and bodies of max_message_bytes (1.5, 2.4)."""
    queue = await edge.numbered("orders", 7)
    await client.put(7, *(b"%d" % number for number in range(2_500)))
    await client.put(7, b"x" * (1 << 20))
    stats = await edge.stats(queue)
    assert stats["ready"] == 2_501
    assert (await edge.bodies(queue))[:3] == [b"0", b"1", b"2"]


async def test_two_connections_put_into_one_queue(edge: LiveEdge, client: Client) -> None:
    """Check that two connections may put into one unassigned queue (2.3)."""
    queue = await edge.numbered("orders", 7)
    other = await edge.client()
    await asyncio.gather(client.put(7, *[b"a"] * 50), other.put(7, *[b"b"] * 50))
    assert sorted(await edge.bodies(queue)) == [b"a"] * 50 + [b"b"] * 50


async def test_number_may_move_to_another_queue(edge: LiveEdge, client: Client) -> None:
    """Check that a number that moved addresses the queue that has it now (2.1)."""
    old = await edge.numbered("old", 7)
    await client.put(7, b"one")
    await edge.tools.catalogue.delete(old)
    new = await edge.numbered("new", 7)

    async def arrives_in_new() -> bool:
        other = await edge.client()
        await other.send(other.data(7, b"two"))
        other.fin()
        return await other.rest() == other.confirm

    await until(arrives_in_new)
    assert set(await edge.bodies(new)) == {b"two"}


async def test_requests_are_counted_by_operation_and_result(edge: LiveEdge, client: Client) -> None:
    await edge.numbered("orders", 7)
    await client.put(7, b"one", b"two")
    await client.send(client.data(7, b"three", kind=UNRELIABLE))
    assert not await client.is_available(8, 7)
    edge.service.tally.publish()

    def requests(operation: str, result: str) -> float:
        return edge.value("penstock_requests_total", operation=operation, result=result)

    assert requests("data", "ok") == 2
    assert requests("data_unreliable", "ok") == 1
    assert requests("available_request", "ok") == 1
    assert requests("available_request", "failed") == 1
    assert edge.refusals() == {"queue_unknown": 1}


async def test_drain_confirms_received_messages(edge: LiveEdge, client: Client) -> None:
    """Check that a drain puts in and confirms whole messages before it closes the connection (2.4)."""
    queue = await edge.numbered("orders", 7)
    traffic = edge.listeners["mca"].traffic
    before = traffic.received
    message = client.data(7, b"hello")
    await client.send(message)
    await until(lambda: traffic.received - before >= len(message))
    await edge.listeners["mca"].drain(0.0)
    assert await client.rest() == client.confirm
    assert await edge.bodies(queue) == [b"hello"]


async def test_nothing_is_confirmed_while_the_store_hangs(new_server: NewServer, start: Start) -> None:
    """Check that nothing is confirmed while the store hangs: its outcome is unknown (2.1).

    "inserted" means durable at the queue's level.
    """
    server: Server = await new_server()
    edge = await start(server, request_timeout_s=0.5, store={"reply_timeout_s": 0.3, "call_deadline_s": 0.4})
    queue = await edge.heard_numbered("orders", 7)
    client = await edge.client()
    await client.put(7, b"one")
    server.stop()
    await client.send(client.data(7, b"two"))
    assert await client.rest() == b""
    server.cont()
    assert edge.refusals()["outcome_unknown"] == 1
    await until(edge.is_ready)
    other = await edge.client()
    await other.put(7, b"three")
    assert (await edge.bodies(queue))[0] == b"one"
