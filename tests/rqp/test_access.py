"""Access rules of queues (docs/operations.md; rqp_mca.md 1.3, 2; rqp_cast.md 3.2)."""

from __future__ import annotations

from typing import Any

import pytest

from protos.rqp_cast import Quality, Result
from protos.rqp_mca import AvailableConfirm, QueueConfirm
from services.store.model.errors import AccessDenied
from tests.live import until
from tests.rqp.cast.hands import HandSender
from tests.rqp.cast.machines import Machines
from tests.rqp.cast.net import HERE, KEY, ended, keyed, unanswered
from tests.rqp.conftest import Start
from tests.rqp.live import LiveEdge
from tests.rqp.mca.client import UNRELIABLE, Client
from tests.rqp.mca.peer import McaPeer, peer_settings
from tests.servers import Server

ELSEWHERE = {"peers": ["127.0.0.9"]}


@pytest.mark.parametrize("access", [ELSEWHERE, {"edges": ["tmq"]}, {"certificates": ["shop"]}])
async def test_queue_without_access_is_not_available(
    edge: LiveEdge, client: Client, access: dict[str, Any]
) -> None:
    """Check that a queue without access is not answered, like an unknown number.

    Counted and logged (rqp_mca.md 1.3).
    """
    await edge.numbered("orders", 7, access=access)
    await edge.numbered("end", 8, access={"edges": ["rqp"], "peers": ["127.0.0.0/8"]})
    assert not await client.is_available(7, 8)
    assert not await client.is_assigned(7, 8)
    assert edge.refusals()["access_denied"] == 2
    (line,) = edge.log.events("refused", reason="access_denied")
    assert "queue 'orders' is not for this client: access." in line.detail  # type: ignore[attr-defined]


async def test_reliable_message_without_access_closes_the_connection(edge: LiveEdge, client: Client) -> None:
    """Check that a reliable message without access closes the connection unconfirmed (rqp_mca.md 2.1).

    Earlier messages are confirmed.
    """
    orders = await edge.numbered("orders", 7, access=ELSEWHERE)
    other = await edge.numbered("other", 8)
    await client.send(client.data(8, b"1"), client.data(7, b"2"), client.data(8, b"3"))
    assert await client.rest() == client.confirm
    assert (await edge.bodies(other), await edge.bodies(orders)) == ([b"1"], [])
    assert edge.refusals()["access_denied"] == 1
    assert await edge.dead(orders) == []


async def test_unreliable_message_without_access_is_lost(edge: LiveEdge, client: Client) -> None:
    """Check that an unreliable message without access is lost and counted (rqp_mca.md 2.1).

    Dead letters are closed to unauthorised senders, too.
    """
    orders = await edge.numbered("orders", 7, access=ELSEWHERE)
    await edge.numbered("other", 8)
    await client.send(client.data(7, b"1", b"2", kind=UNRELIABLE))
    await client.put(8, b"3")
    assert edge.value("penstock_rqp_lost_messages_total", protocol="rqp-mca") == 2
    assert edge.refusals()["access_denied"] == 1
    assert (await edge.bodies(orders), await edge.dead(orders)) == ([], [])


async def test_changed_access_applies_to_open_connections(edge: LiveEdge, client: Client) -> None:
    """Check that changed access applies to open connections.

    A client that lost access blocks no other: its assignment expires.
    """
    queue = await edge.numbered("orders", 7)
    await client.request(7)
    await client.put(7, b"1")
    await edge.replace_numbered("orders", 7, access=ELSEWHERE)
    handle = edge.service.store.catalogue.held("orders")
    assert handle is not None
    await until(lambda: handle.admission is not None)
    await client.send(client.data(7, b"2"))
    assert await client.rest() == b""
    assert await edge.bodies(queue) == [b"1"]
    await until(lambda: _is_free(edge, "orders"))
    await edge.replace_numbered("orders", 7)
    await until(lambda: handle.admission is None)
    again = await edge.client()
    await again.put(7, b"2")
    assert await edge.bodies(queue) == [b"1", b"2"]


async def _is_free(edge: LiveEdge, name: str) -> bool:
    return (await edge.tools.listing.stats(await edge.tools.catalogue.find(name)))["reserved_by"] == ""


async def test_transmission_queue_with_access_rules_is_sent(
    server: Server, start: Start, peer: McaPeer
) -> None:
    """Check that a transmission queue with access rules is sent: the sending agent needs no access itself."""
    edge = await start(server, mca={"peers": peer_settings(peer)})
    queue = await edge.remote("away", spec={"access": {"edges": ["tmq"], "peers": ["127.0.0.9"]}})
    await edge.put(queue, b"one")
    call = await peer.call()
    await call.next(object)
    call.say(AvailableConfirm(7))
    await call.next(object)
    call.say(QueueConfirm(7))
    assert await call.body() == b"one"
    call.confirm()
    await until(lambda: edge.is_empty(queue))


# RQP/cast


@pytest.mark.parametrize("access", [ELSEWHERE, {"edges": ["tmq"]}])
async def test_question_without_access_is_not_answered(
    machines: Machines, hands: HandSender, access: dict[str, Any]
) -> None:
    """Check that a question without access is counted as `access_denied` and not answered (rqp_cast.md 3.2).

    This holds whether or not the queue is cached.
    """
    edge = await machines.receiver()
    queue = await keyed(edge, access=access)
    for number in (1, 2):
        hands.ask()
        await until(lambda number=number: unanswered(edge, "access_denied") == number)
    assert edge.refusals()["access_denied"] == 2
    lines = edge.log.events("refused", reason="access_denied", peer=HERE)
    assert len(lines) == 2
    assert await edge.bodies(queue) == []


async def test_machine_with_access_is_answered(machines: Machines, hands: HandSender) -> None:
    edge = await machines.receiver()
    queue = await keyed(edge, access={"edges": ["rqp"], "peers": [f"{HERE}/32"]})
    assert await hands.send(b"hello") is Result.SUCCESS
    assert await edge.bodies(queue) == [b"hello"]


@pytest.mark.parametrize("quality", [Quality.HIGH_QUALITY, Quality.LOW_QUALITY])
async def test_access_removed_during_a_session(
    machines: Machines, hands: HandSender, quality: Quality
) -> None:
    """Check that access removed during a session fails its message (rqp_cast.md 5.5).

    A certain message gets FAILURE; an uncertain one is a dead letter.
    """
    edge = await machines.receiver()
    queue = await keyed(edge)
    offer = await hands.asked()
    await hands.approve(offer, quality=quality)
    spec = {"bindings": {"rqpCast": {"key": KEY}}, "access": ELSEWHERE}
    await edge.tools.catalogue.declare("goal", type(queue.spec).model_validate(spec), "test", replace=True)
    await until(lambda: edge.service.store.catalogue.held("goal").admission is not None)  # type: ignore[union-attr]
    await hands.data(offer, b"hello")
    if quality is Quality.HIGH_QUALITY:
        assert (await hands.end()).result is Result.FAILURE
    await until(lambda: ended(edge, "refused") == 1)
    assert await edge.bodies(queue) == []
    letters = [(letter.reason, letter.body) for letter in await edge.dead(queue)]
    assert letters == ([] if quality is Quality.HIGH_QUALITY else [("refused", b"hello")])
    assert edge.value("penstock_store_events_total", reason=AccessDenied.reason) == 1
