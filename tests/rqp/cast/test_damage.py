"""Damaged, late and truncated messages at a receiving agent of RQP/cast (rqp_cast.md 5)."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from protos.rqp_cast import (
    DataMsg,
    Quality,
    Result,
    encode_data,
    encode_record,
)
from services.kit.net.sockets import reset_on_close
from services.rqp.cast.receiving import session
from services.store import Queue
from tests.live import until
from tests.rqp.cast.hands import HandSender
from tests.rqp.cast.machines import Machines
from tests.rqp.cast.net import HERE, agent, ended, is_reserved, keyed, port_range
from tests.rqp.cast.steps import QUALITIES, chosen, ends, letters
from tests.rqp.live import LiveEdge


def wire(body: bytes, key: int = 7) -> bytes:
    return encode_data(DataMsg(HERE, key, encode_record(body)))


@pytest.mark.parametrize(("quality", "cut"), [(QUALITIES[0], 1), (QUALITIES[-1], 12), (QUALITIES[0], 14)])
async def test_truncated_message_is_partially_received(
    machines: Machines, hands: HandSender, quality: Quality, cut: int
) -> None:
    """Check that a truncated message is stored as PARTIALLY_RECEIVED and answered FAILURE (5.2)."""
    edge = await machines.receiver()
    queue = await keyed(edge)
    offer = await chosen(hands, quality)
    await hands.say(offer.data_port, wire(b"hello")[:cut])
    await until(lambda: ended(edge, "truncated") == 1)
    await ends(hands, quality, Result.FAILURE)
    assert await letters(edge, queue) == [("partially_received", "truncated", b"hello"[: max(cut - 12, 0)])]
    assert await edge.bodies(queue) == []
    assert (await edge.dead(queue))[0].origin == "cast 127.0.0.1"


async def test_t_wait3_within_a_message(machines: Machines, hands: HandSender) -> None:
    """Check that T_WAIT3 within a message stores it as PARTIALLY_RECEIVED; its ports rest (5.2, 1.2)."""
    edge = await machines.receiver(t_wait3_s=0.3)
    queue = await keyed(edge)
    offer = await chosen(hands)
    with await hands.connect(offer.data_port) as sock:
        await asyncio.get_running_loop().sock_sendall(sock, wire(b"hello")[:-2])
        assert (await hands.end()).result is Result.FAILURE
        assert await hands.is_closed(sock)
    assert await letters(edge, queue) == [("partially_received", "timed_out", b"hel")]


async def test_t_wait2_ends_the_session(machines: Machines, hands: HandSender) -> None:
    """Check that T_WAIT2 without ACCEPT_RECEIVER_MSG ends the session and frees the queue (5.1)."""
    edge = await machines.receiver(t_wait2_s=0.2)
    queue = await keyed(edge)
    offer = await hands.asked()
    await until(lambda: ended(edge, "timed_out_wait_for_approval") == 1)
    assert not await is_reserved(edge, queue)
    with pytest.raises(ConnectionRefusedError):
        await hands.connect(offer.accept_port)
    assert await hands.send(b"the next one") is Result.SUCCESS


async def test_t_wait3_before_the_first_octet(machines: Machines, hands: HandSender) -> None:
    """Check that after T_WAIT3 before the first octet nothing is stored or answered (5.1)."""
    edge = await machines.receiver(t_wait3_s=0.2)
    queue = await keyed(edge)
    offer = await chosen(hands)
    with await hands.connect(offer.data_port) as sock:
        await until(lambda: ended(edge, "timed_out_wait_for_message") == 1)
        assert await hands.is_closed(sock)
    await ends(hands, Quality.LOW_QUALITY, Result.FAILURE)
    assert await letters(edge, queue) == []
    assert not await is_reserved(edge, queue)


@pytest.mark.parametrize("resets", [False, True])
async def test_empty_data_connection_is_ignored(machines: Machines, hands: HandSender, resets: bool) -> None:
    """Check that an empty data connection is ignored (5.1).

    The sender died between its approval and its data, so nothing is kept or answered.
    """
    edge = await machines.receiver()
    queue = await keyed(edge)
    offer = await chosen(hands)
    sock = await hands.connect(offer.data_port)
    if resets:
        reset_on_close(sock)
    sock.close()
    await until(lambda: ended(edge, "connection_lost" if resets else "data_lost") == 1)
    await ends(hands, Quality.LOW_QUALITY, Result.FAILURE)
    assert await letters(edge, queue) == []
    assert not await is_reserved(edge, queue)


@pytest.mark.parametrize("quality", QUALITIES)
async def test_message_with_another_key_is_injured(
    machines: Machines, hands: HandSender, quality: Quality
) -> None:
    """Check that a message with another key is INJURED (5.2).

    It is read to its end first, as its sender may not keep it.
    """
    edge = await machines.receiver()
    queue = await keyed(edge)
    offer = await chosen(hands, quality)
    await hands.data(offer, b"whose?", key=8)
    await until(lambda: ended(edge, "other_key") == 1)
    await ends(hands, quality, Result.FAILURE)
    assert await letters(edge, queue) == [("injured", "other_key", b"whose?")]


async def test_too_large_message_is_injured(machines: Machines, hands: HandSender) -> None:
    """Check that a message that is too large is INJURED as soon as its size is known (5.2).

    Its data are dropped: such a body is never held.
    """
    edge = await machines.receiver(max_message_bytes=100)
    queue = await keyed(edge)
    offer = await chosen(hands)
    with await hands.connect(offer.data_port) as sock:
        head = wire(b"")[:8] + (0xFFFFFFFF).to_bytes(4, "big")
        await asyncio.get_running_loop().sock_sendall(sock, head)
        assert (await hands.end()).result is Result.FAILURE
    assert await letters(edge, queue) == [("injured", "message_too_large", b"")]


@pytest.mark.parametrize("settings", [{"max_message_bytes": 100}, {"t_wait3_s": 0.3}])
async def test_sender_that_still_writes_gets_failure(
    machines: Machines, hands: HandSender, settings: dict[str, Any]
) -> None:
    """Check that a sender that still writes gets FAILURE (5.2).

    The rest of a damaged message is read: closing with unread octets would reset its connection.
    """
    edge = await machines.receiver(**settings, connect_timeout_s=10.0)
    await keyed(edge)
    offer = await chosen(hands)
    loop, data = asyncio.get_running_loop(), wire(bytes(1 << 20))
    with await hands.connect(offer.data_port) as sock:
        await loop.sock_sendall(sock, data[: 1 << 19])
        assert (await hands.end()).result is Result.FAILURE
        await loop.sock_sendall(sock, data[1 << 19 :])
        sock.shutdown(socket.SHUT_WR)
        assert await hands.octets(sock) == b"", "closed, and not reset"
    await until(lambda: ended(edge, "message_too_large") + ended(edge, "timed_out") == 1)


@pytest.mark.parametrize("limit", [{"octets": 1 << 18}, {"seconds": 0.3}])
async def test_discarding_the_rest_is_bounded(
    machines: Machines, hands: HandSender, monkeypatch: pytest.MonkeyPatch, limit: dict[str, float]
) -> None:
    """Check that discarding the rest is bounded: senders that never end, or stall, are cut off (5.2)."""
    monkeypatch.setattr(session, "READ_OUT_BYTES", limit.get("octets", 1 << 30))
    edge = await machines.receiver(max_message_bytes=100, connect_timeout_s=limit.get("seconds", 60.0))
    await keyed(edge)
    offer = await chosen(hands)
    with await hands.connect(offer.data_port) as sock:
        head = wire(b"")[:8] + (0xFFFFFFFF).to_bytes(4, "big")
        await asyncio.get_running_loop().sock_sendall(sock, head)
        assert (await hands.end()).result is Result.FAILURE
        if "octets" in limit:
            with pytest.raises(ConnectionError):
                await asyncio.get_running_loop().sock_sendall(sock, bytes(64 << 20))
        assert await hands.is_closed(sock)
    await until(lambda: ended(edge, "message_too_large") == 1)


@pytest.mark.parametrize("quality", QUALITIES)
async def test_message_of_a_deleted_queue_becomes_a_zombie(
    machines: Machines, hands: HandSender, quality: Quality
) -> None:
    """Check that a message of a deleted queue becomes a ZOMBIE in DEAD.LETTER.Q, answered FAILURE (5.3, 5.6)."""
    edge = await machines.receiver()
    queue = await keyed(edge)
    dead = await edge.declare("DEAD.LETTER.Q")
    offer = await chosen(hands, quality)
    await edge.tools.catalogue.delete(queue)
    await hands.data(offer, b"hello")
    await until(lambda: ended(edge, "gone") == 1)
    await ends(hands, quality, Result.FAILURE)
    assert await letters(edge, dead) == [("zombie", "gone", b"hello")]
    assert await edge.bodies(dead) == []


async def test_zombie_without_a_dead_letter_queue_is_counted(machines: Machines, hands: HandSender) -> None:
    """Check that a ZOMBIE without a DEAD.LETTER.Q is dropped and counted (5.3)."""
    edge = await machines.receiver()
    queue = await keyed(edge)
    offer = await chosen(hands)
    await edge.tools.catalogue.delete(queue)
    await hands.data(offer, b"hello")
    assert (await hands.end()).result is Result.FAILURE
    assert edge.value("penstock_rqp_cast_unburied_total", reason="zombie") == 1


@pytest.mark.parametrize(
    ("octets", "reason"),
    [
        (b"\x7f\0\0\1\x2c\x58\0\0\0\1\7", "unknown_type"),
        (b"\x7f\0\0\1\0\0\0\0\0\1\1", "zero_port"),
        (b"\x7f\0\0\1\x2c\x58\0\0\0\0\1", "zero_id"),
        (b"\x7f\0\0", "truncated"),
    ],
)
async def test_malformed_approval_ends_the_session(
    machines: Machines, hands: HandSender, octets: bytes, reason: str
) -> None:
    """Check that a malformed approval is counted and ends the session; the queue is free again (2.1, 5.1)."""
    edge = await machines.receiver()
    queue = await keyed(edge)
    offer = await hands.asked()
    await hands.say(offer.accept_port, octets)
    await until(lambda: ended(edge, "fault") == 1)
    assert edge.value("penstock_rqp_cast_faults_total", reason=reason) == 1
    await until(lambda: _is_free(edge, queue))


@pytest.mark.parametrize("is_approved", [False, True])
async def test_proxy_header_is_reported(machines: Machines, hands: HandSender, is_approved: bool) -> None:
    """Check that a PROXY header is reported at accept_port and at data_port, where it would be a damaged message."""
    edge = await machines.receiver()
    queue = await keyed(edge)
    offer = await hands.asked()
    if is_approved:
        await hands.approve(offer)
    port = offer.data_port if is_approved else offer.accept_port
    await hands.say(port, b"\r\n\r\n\x00\r\nQUIT\n" + bytes(4))
    await until(lambda: ended(edge, "fault") == 1)
    assert edge.refusals() == {"proxy_header": 1}
    await until(lambda: _is_free(edge, queue))
    assert await edge.dead(queue) == []


async def test_declined_answer_ends_the_session(machines: Machines, hands: HandSender) -> None:
    """Check that a declined answer ends the session without an error (3.3, 5.1).

    The queue is free again, and its ports need no rest.
    """
    edge = await machines.receiver(port_rest_s=600.0, receiver_ports=port_range(2), t_wait2_s=600.0)
    await keyed(edge)
    for number in range(1, 4):
        offer = await hands.asked()
        await hands.say(offer.accept_port, b"")
        await until(lambda number=number: ended(edge, "declined") == number)
    assert edge.value("penstock_rqp_cast_faults_total", reason="truncated") == 0
    assert await hands.send(b"hello") is Result.SUCCESS


async def _is_free(edge: LiveEdge, queue: Queue) -> bool:
    return not await is_reserved(edge, queue)


async def test_unreachable_sender_ends_the_session(machines: Machines, hands: HandSender) -> None:
    """Check that an unreachable sender ends the session (5.1).

    Its ports were not announced and need no rest.
    """
    edge = await machines.receiver(port_rest_s=600.0)
    queue = await keyed(edge)
    hands.findreceiver.close()
    for number in range(1, 31):  # more than there are ports
        hands.ask()
        await until(lambda number=number: ended(edge, "connection_lost") == number)
        await until(lambda: _is_free(edge, queue))


async def test_data_before_the_approval_waits_for_it(machines: Machines, hands: HandSender) -> None:
    """Check that data before the approval waits for it: data_port already listens (3.2)."""
    edge = await machines.receiver()
    queue = await keyed(edge)
    offer = await hands.asked()
    await hands.data(offer, b"hello")
    await hands.approve(offer)
    assert (await hands.end()).result is Result.SUCCESS
    assert await edge.bodies(queue) == [b"hello"]


async def test_reset_within_a_message(machines: Machines, hands: HandSender) -> None:
    """Check that a reset within a message stores a part: the sender's machine died (5.2)."""
    edge = await machines.receiver()
    queue = await keyed(edge)
    offer = await chosen(hands)
    sock: socket.socket = await hands.connect(offer.data_port)
    await asyncio.get_running_loop().sock_sendall(sock, wire(b"hello")[:15])
    await until(lambda: any(s.buffered == 15 for s in agent(edge).questions.sessions.active))
    reset_on_close(sock)
    sock.close()
    assert (await hands.end()).result is Result.FAILURE
    assert await letters(edge, queue) == [("partially_received", "truncated", b"hel")]
