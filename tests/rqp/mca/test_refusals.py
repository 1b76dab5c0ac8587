"""Refusals of a receiving MCA: malformed input, and messages that cannot be put in (rqp_mca.md 1.4, 2.1, 2.4)."""

from __future__ import annotations

from collections import Counter

from protos.rqp_mca import (
    Profile,
    encode_available_confirm,
    encode_available_request,
    encode_data_confirm,
    encode_queue_confirm,
)
from tests.live import until
from tests.rqp.conftest import Start
from tests.rqp.held_answers import hold_answers
from tests.rqp.live import LiveEdge
from tests.rqp.mca.client import UNRELIABLE, Client
from tests.servers import Server
from tests.tls_hello import client_hello

GOOD = bytes.fromhex("1 00000007 0 00000002 6869".replace(" ", ""))  # the spec's own example (1.2)
BROKEN = [
    ("unknown_message", GOOD + b"\x70"),
    ("unknown_message", GOOD + b"\x00"),
    ("bad_type", GOOD + bytes.fromhex("1 00000007 2 00000000".replace(" ", ""))),
    ("bad_padding", GOOD + b"\x30\0\0\0\x71"),
    ("unexpected_message", GOOD + encode_data_confirm(Profile.PACKED)),
    ("unexpected_message", GOOD + encode_available_confirm(Profile.PACKED, 7)),
    ("unexpected_message", GOOD + encode_queue_confirm(Profile.PACKED, 7)),
    ("message_too_large", GOOD + bytes.fromhex("1 00000007 0 00100001".replace(" ", ""))),
    ("message_too_large", GOOD + bytes.fromhex("1 00000007 0 ffffffff".replace(" ", ""))),
    ("message_too_large", GOOD + bytes.fromhex("1 00000007 1 ffffffff".replace(" ", ""))),
]


async def test_malformed_input_closes_after_earlier_messages(edge: LiveEdge) -> None:
    """Check that malformed input closes after earlier messages are handled (1.4, 2.4).

    Later octets are not read, and no body is held.
    """
    queue = await edge.numbered("orders", 7)
    refused: Counter[str] = Counter()
    for reason, octets in BROKEN:
        client = await edge.client()
        await client.send(octets + GOOD)
        assert await client.rest() == client.confirm
        refused[reason] += 1
        assert edge.refusals() == refused
        assert edge.budget.total == 0
    assert await edge.bodies(queue) == [b"hi"] * len(BROKEN)


async def test_unknown_profile_is_refused(edge: LiveEdge) -> None:
    """Check that an unknown profile is refused (1.2)."""
    for number, octet in enumerate([0x07, 0x0F, 0x70, 0xFF], 1):
        client = await edge.client()
        await client.send(bytes([octet]))
        assert await client.rest() == b""
        assert edge.refusals() == {"unknown_profile": number}


async def test_tls_at_a_plain_port_is_reported(edge: LiveEdge, client: Client) -> None:
    """Check that TLS at a plain port is reported as such, and not as an invalid message."""
    await client.send(client_hello())
    assert await client.rest() == b""
    assert edge.refusals() == {"tls_at_a_plain_port": 1}
    (refused,) = edge.log.events("refused", reason="tls_at_a_plain_port")
    assert "the connection begins with TLS" in vars(refused)["detail"]


async def test_bad_uint4_is_refused(edge: LiveEdge) -> None:
    """Check that a bad uint4 is refused in the wider profiles (1.4)."""
    client = await edge.client(Profile.OCTET)
    await client.send(b"\x01\0\0\0\x07\x10")
    await client.send(b"\0\0\0\0")
    assert await client.rest() == b""
    assert edge.refusals() == {"bad_uint4": 1}


async def test_fin_within_a_message(edge: LiveEdge) -> None:
    """Check that a FIN within a message, at each octet, puts in and confirms only whole messages (2.4)."""
    queue = await edge.numbered("orders", 7)
    for cut in range(1, len(GOOD)):
        client = await edge.client()
        await client.send(GOOD + GOOD[:cut])
        client.fin()
        assert await client.rest() == client.confirm
        assert await edge.bodies(queue) == [b"hi"] * cut
        assert edge.refusals() == {"truncated": cut}


async def test_reset_within_a_message(edge: LiveEdge, client: Client) -> None:
    """Check that a reset within a message puts in no part of it (2.4)."""
    queue = await edge.numbered("orders", 7)
    await client.put(7, b"hi")
    await client.send(GOOD[:10])
    client.reset()
    await until(lambda: not edge.connections())
    assert await edge.bodies(queue) == [b"hi"]


async def test_unfinished_message_times_out(server: Server, start: Start) -> None:
    """Check that an incomplete message times out (1.5)."""
    edge = await start(server, mca={"message_timeout_s": 0.1})
    queue = await edge.numbered("orders", 7)
    client = await edge.client()
    await client.send(GOOD + GOOD[:10])
    assert await client.rest() == client.confirm
    assert edge.refusals() == {"request_timeout": 1}
    assert await edge.bodies(queue) == [b"hi"]


async def test_size_limit_is_configurable(server: Server, start: Start) -> None:
    """Check that the size limit is configurable (2.4)."""
    edge = await start(server, mca={"max_message_bytes": 5})
    queue = await edge.numbered("orders", 7)
    client = await edge.client()
    await client.put(7, b"12345")
    await client.send(client.data(7, b"123456"))
    assert await client.rest() == b""
    assert await edge.bodies(queue) == [b"12345"]


# RELIABLE and not inserted (2.1): not confirmed, counted, logged, closed; the sender keeps it


async def test_reliable_message_for_an_unknown_queue(edge: LiveEdge, client: Client) -> None:
    await client.send(client.data(7, b"hello"))
    assert await client.rest() == b""
    assert edge.refusals() == {"queue_unknown": 1}
    (line,) = edge.log.events("refused", reason="queue_unknown")
    assert "queue 7" in line.detail


async def test_reliable_message_for_a_paused_queue(edge: LiveEdge, client: Client) -> None:
    queue = await edge.numbered("orders", 7, paused=True)
    await client.send(client.data(7, b"hello"))
    assert await client.rest() == b""
    assert edge.refusals() == {"queue_paused": 1}
    assert await edge.is_empty(queue)


async def test_reliable_message_for_a_full_queue(edge: LiveEdge, client: Client) -> None:
    """Check that for a full queue only RELIABLE messages before the first refused one are confirmed.

    A later confirmation would be taken for the refused one's.
    """
    queue = await edge.numbered("orders", 7, maxLength=3)
    await client.send(client.data(7, *[b"m"] * 5), encode_available_request(Profile.PACKED, 7))
    assert await client.rest() == client.confirm * 3
    assert edge.refusals()["queue_full"] == 1
    assert (await edge.stats(queue))["ready"] == 3


async def test_no_confirm_follows_a_refusal(edge: LiveEdge, client: Client) -> None:
    """Check that no confirm follows a refusal, since it would be taken for the refused message's."""
    good = await edge.numbered("good", 9)
    await edge.numbered("shut", 8, paused=True)
    await client.put(9, b"warm")
    assert not await client.is_available(8, 9)  # from here on both are cached
    await client.send(client.data(9, b"first"), client.data(8, b"refused"), client.data(9, b"behind"))
    assert await client.rest() == client.confirm
    assert await edge.bodies(good) == [b"warm", b"first"]


async def test_a_refusal_waits_for_the_confirms_before_it(edge: LiveEdge, client: Client) -> None:
    """Check that a refusal waits for the confirms before it, also those of another domain, which come later."""
    good = await edge.numbered("good", 9)
    await edge.numbered("shut", 8, paused=True, domain="two")
    await client.put(9, b"warm")
    assert not await client.is_available(8, 9)
    waiting, let_go = hold_answers(edge)
    behind = (client.data(9, b"behind"), client.data(8, b"refused too"), client.data(9, b"last"))
    await client.send(client.data(9, *[b"first"] * 2), client.data(8, b"refused"), *behind)
    await until(lambda: waiting)
    assert edge.refusals() == {"queue_paused": 1}  # the question
    let_go()
    assert await client.rest() == client.confirm * 2
    assert await edge.bodies(good) == [b"warm", b"first", b"first"]
    assert edge.refusals() == {"queue_paused": 2}


async def test_reliable_message_for_a_deleted_queue(edge: LiveEdge, client: Client) -> None:
    """Check that a RELIABLE message for a queue deleted between two messages of a connection is refused."""
    queue = await edge.numbered("orders", 7)
    await client.put(7, b"one")
    await edge.tools.catalogue.delete(queue)
    await client.send(client.data(7, b"two"))
    assert await client.rest() == b""
    assert edge.refusals() == {"queue_unknown": 1}


# UNRELIABLE and not inserted (2.1): dead-lettered with the reason, as senders do not keep them


async def test_unreliable_message_for_a_paused_queue(edge: LiveEdge, client: Client) -> None:
    queue = await edge.numbered("orders", 7, paused=True)
    other = await edge.numbered("other", 8)
    await client.send(client.data(7, b"one", b"two", kind=UNRELIABLE), client.data(8, b"three"))
    assert await client.read(1) == client.confirm  # it continues
    letters = await edge.dead(queue)
    assert [(letter.body, letter.reason, letter.origin) for letter in letters] == [
        (b"one", "queue_paused", "mca 127.0.0.1"),
        (b"two", "queue_paused", "mca 127.0.0.1"),
    ]
    assert await edge.bodies(other) == [b"three"]


async def test_unreliable_message_for_a_full_queue(edge: LiveEdge, client: Client) -> None:
    queue = await edge.numbered("orders", 7, maxLength=2)
    await client.send(client.data(7, b"one", b"two", b"three", b"four", kind=UNRELIABLE))
    client.fin()
    assert await client.rest() == b""
    assert await edge.bodies(queue) == [b"one", b"two"]
    letters = await edge.dead(queue)
    assert [(letter.body, letter.reason) for letter in letters] == [
        (b"three", "queue_full"),
        (b"four", "queue_full"),
    ]


async def test_unreliable_message_for_an_assigned_queue(edge: LiveEdge, client: Client) -> None:
    """Check that an UNRELIABLE message for an assigned queue is dead-lettered (2.3)."""
    queue = await edge.numbered("orders", 7)
    holder = await edge.client()
    await holder.request(7)
    await client.send(client.data(7, b"one", kind=UNRELIABLE))
    client.fin()
    assert await client.rest() == b""
    (letter,) = await edge.dead(queue)
    assert (letter.body, letter.reason) == (b"one", "queue_reserved")
    await holder.put(7, b"two")


async def test_unreliable_message_for_an_unknown_queue_is_counted(edge: LiveEdge, client: Client) -> None:
    """Check that an UNRELIABLE message for an unknown queue is counted: there are no dead letters for it."""
    queue = await edge.numbered("other", 8)
    await client.send(client.data(7, b"one", b"two", kind=UNRELIABLE), client.data(8, b"three"))
    assert await client.read(1) == client.confirm
    assert await edge.bodies(queue) == [b"three"]
    assert edge.value("penstock_rqp_lost_messages_total", protocol="rqp-mca") == 2
    assert edge.refusals() == {"queue_unknown": 1}
