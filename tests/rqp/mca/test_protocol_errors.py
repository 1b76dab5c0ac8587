"""Messages when a receiver breaks the protocol (rqp_mca.md 1.4, 3.3)."""

from __future__ import annotations

import asyncio

import pytest

from protos.rqp_mca import (
    MAX_RUN,
    AvailableConfirm,
    Confirm,
    DataConfirm,
    Limits,
    Profile,
    QueueConfirm,
    encode_available_request,
    encode_data_confirm,
    encode_message,
)
from protos.types import PeerError
from services.rqp.mca.channel import Channel
from services.rqp.mca.directory import Endpoint
from tests.live import until
from tests.rqp.conftest import Start
from tests.rqp.mca.failing import failures, sending_edge
from tests.rqp.mca.peer import McaPeer
from tests.servers import Server

AVAILABLE, YOURS = AvailableConfirm(7), QueueConfirm(7)


@pytest.mark.parametrize(
    "lie",
    [AVAILABLE, YOURS, AvailableConfirm(8), QueueConfirm(8)],
    ids=["available", "yours", "available 8", "yours 8"],
)
async def test_wrong_confirmation_closes_the_connection(
    server: Server, start: Start, peer: McaPeer, lie: AvailableConfirm
) -> None:
    """Check that an unexpected confirmation closes the connection (3.3)."""
    edge = await sending_edge(server, start, peer, data_timeout_s=20.0)
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    call = await peer.reserved()
    assert await call.body() == b"one"
    call.say(lie)
    await call.ended()
    again = await peer.reserved()
    assert await again.body() == b"one"
    again.confirm()
    await until(lambda: edge.is_empty(queue))
    assert failures(edge, "unexpected_confirm") == 1


async def test_surplus_confirmations_close_the_connection(
    server: Server, start: Start, peer: McaPeer
) -> None:
    """Check that surplus confirmations close the connection before anything else is sent (3.3).

    Messages in flight count as confirmed.
    """
    edge = await sending_edge(server, start, peer, window=2, data_timeout_s=20.0)
    queue = await edge.remote("away")
    await edge.put(queue, b"one", b"two", b"three")
    call = await peer.reserved()
    assert await call.bodies(2) == [b"one", b"two"]
    call.say(DataConfirm(3))
    await call.ended()
    again = await peer.reserved()
    assert await again.body() == b"three"
    again.confirm()
    await until(lambda: edge.is_empty(queue))


@pytest.mark.parametrize(
    ("octets", "reason"),
    [(b"\x21", "bad_padding"), (b"\x10", "unexpected_message"), (b"\xff", "unknown_message")],
)
async def test_malformed_confirmation_closes_the_connection(
    server: Server, start: Start, peer: McaPeer, octets: bytes, reason: str
) -> None:
    """Check that a malformed confirmation closes the connection and is counted; the message is resent (1.4, 3.3)."""
    edge = await sending_edge(server, start, peer, data_timeout_s=20.0)
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    call = await peer.reserved()
    assert await call.body() == b"one"
    call.say_octets(octets)
    await call.ended()
    again = await peer.reserved()
    assert await again.body() == b"one"
    words = "protocol_error: the peer that reserved queue 7 breaks the protocol instead of confirming"
    await until(lambda: edge.has_condition(queue, f"{words}; {peer.address}: {reason}"))
    again.confirm()
    await until(lambda: edge.is_empty(queue))
    assert edge.refusals()[reason] == 1
    assert failures(edge, "protocol_error") == 1


async def test_answer_in_another_profile_is_reported(server: Server, start: Start, peer: McaPeer) -> None:
    """Check that an answer in another profile is reported (1.2, 3.1).

    The condition names the error, as the peer otherwise looks like one without the queue.
    """
    edge = await sending_edge(server, start, peer, availability_timeout_s=0.2)
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    while not await edge.has_condition(queue, "no_receiver: "):
        (await peer.asked()).say_octets(b"\x04\0\0\0\x07")  # MSG_QUEUE_AVAILABLE_CONFIRM in octets
    await until(
        lambda: edge.has_condition(queue, f"no_receiver: no peer has queue 7; {peer.address}: unknown")
    )


async def test_confirmation_before_its_data_closes_the_connection(
    server: Server, start: Start, peer: McaPeer
) -> None:
    """Check that a confirmation before its data closes the connection and confirms nothing (3.3)."""
    edge = await sending_edge(server, start, peer, data_timeout_s=20.0)
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    call = await peer.requested()
    call.say_octets(encode_message(Profile.PACKED, YOURS) + encode_message(Profile.PACKED, DataConfirm(1)))
    await call.ended()
    again = await peer.reserved()
    assert await again.body() == b"one"
    again.confirm()
    await until(lambda: edge.is_empty(queue))
    assert failures(edge, "unexpected_confirm") == 1


class Counting:
    """A channel's listener with so many messages in flight."""

    def __init__(self, out: int) -> None:
        self.out = out
        self.confirms: list[tuple[Confirm, int]] = []

    def awaited(self, channel: Channel) -> int:
        return self.out

    def received(self, channel: Channel, confirm: Confirm, awaited: int) -> None:
        self.confirms.append((confirm, awaited))

    def lost(self, channel: Channel, trouble: str | PeerError) -> None:
        raise AssertionError(trouble)

    def has_room(self) -> None:
        pass


async def test_confirmations_count_only_for_messages_sent_before_them(
    server: Server, start: Start, peer: McaPeer
) -> None:
    """Check that confirmations count only for messages sent before them, though all came at once (3.3).

    So many at a time are two runs (1.5).
    """
    edge = await start(server)
    dialler = edge.service.agents[0].dialler  # type: ignore[attr-defined]
    hearer = Counting(MAX_RUN + 3)
    endpoint = Endpoint(peer.host, peer.port, Profile.PACKED, MAX_RUN)
    first = encode_available_request(Profile.PACKED, 7)
    channel = Channel(endpoint, dialler, Limits(), hearer, first)
    await peer.asked()
    confirms = encode_data_confirm(Profile.PACKED) * (MAX_RUN + 2)
    channel.received(confirms, asyncio.get_running_loop().time())
    assert hearer.confirms == [(DataConfirm(MAX_RUN), MAX_RUN + 3), (DataConfirm(2), 3)]
    channel.close()


async def test_peer_error_is_reported_until_it_is_asked_again(
    server: Server, start: Start, peer: McaPeer
) -> None:
    """Check that the condition names peers that broke the protocol until they are asked again (docs/rqp-mca.md)."""
    edge = await sending_edge(server, start, peer, availability_timeout_s=0.2)
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    while f"{peer.address}: unknown" not in await edge.condition(queue):
        (await peer.asked()).say_octets(b"\xff")

    async def is_no_receiver() -> bool:
        return await edge.condition(queue) == "no_receiver: no peer has queue 7"

    await until(is_no_receiver)


async def test_confirmation_in_another_profile_is_refused(
    server: Server, start: Start, peer: McaPeer
) -> None:
    """Check that a confirmation in another profile is refused (1.2)."""
    edge = await sending_edge(server, start, peer)
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    call = await peer.reserved()
    assert await call.body() == b"one"
    call.say_octets(b"\x02")  # MSG_DATA_CONFIRM in octets; packed, it is a msg_id of 0
    await call.ended()
    again = await peer.reserved()
    assert await again.body() == b"one"
    again.confirm()
    await until(lambda: edge.is_empty(queue))


async def test_unfinished_confirmation_times_out(server: Server, start: Start, peer: McaPeer) -> None:
    """Check that an incomplete MSG_QUEUE_CONFIRM times out (1.5)."""
    edge = await sending_edge(server, start, peer, message_timeout_s=0.1, request_timeout_s=20.0)
    queue = await edge.remote("away")
    await edge.put(queue, b"one")
    call = await peer.requested()
    call.say_octets(b"\x60\0\0")
    await call.ended()
    assert edge.refusals()["request_timeout"] == 1
