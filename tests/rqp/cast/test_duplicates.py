"""Duplicates, and messages for full queues, at a receiving agent of RQP/cast (rqp_cast.md 2.3, 5.4 to 5.6)."""

from __future__ import annotations

import asyncio

import pytest

from protos.rqp_cast import (
    Quality,
    Result,
    encode_record,
)
from services.store import INTERNAL_CLIENT, Queue, Source
from tests.live import until
from tests.rqp.cast.hands import HandSender
from tests.rqp.cast.machines import Machines
from tests.rqp.cast.net import HERE, ended, keyed
from tests.rqp.cast.steps import QUALITIES, chosen, ends, letters
from tests.rqp.live import LiveEdge


async def put_as(edge: LiveEdge, queue: Queue, holder: str, body: bytes) -> None:
    """Put a message in as the holder of the queue's reservation."""
    done = asyncio.get_running_loop().create_future()
    pipe = edge.tools.open_domain(queue.domain).pipe
    pipe.messages.publish(
        Source(INTERNAL_CLIENT), queue, [encode_record(body)], "test", done.set_result, holder
    )
    assert await done == []


async def test_duplicate_is_answered_with_failure(machines: Machines, hands: HandSender) -> None:
    """Check that a duplicate is answered with FAILURE and not inserted (5.4)."""
    edge = await machines.receiver()
    queue = await keyed(edge)
    assert await hands.send(b"hello", id=5) is Result.SUCCESS
    assert await hands.send(b"hello", id=5) is Result.FAILURE
    assert await hands.send(b"hello", id=6) is Result.SUCCESS
    assert await edge.bodies(queue) == [b"hello", b"hello"]
    await until(lambda: ended(edge, "duplicate") == 1)
    assert edge.value("penstock_rqp_cast_id_clashes_total") == 0


@pytest.mark.parametrize("text", ["group", "queue"])
async def test_duplicate_is_answered_with_success_if_configured(
    machines: Machines, hands: HandSender, text: str
) -> None:
    """Check that a duplicate is answered with SUCCESS if configured.

    5.4: duplicate_result: success, of the group or the queue; it holds for the same content only (2.3).
    """
    success = {"duplicate_result": "success"}
    group = {"ours": {"addresses": [HERE], **success}} if text == "group" else {}
    edge = await machines.receiver(peers=group)
    binding = {"duplicateResult": "success"} if text == "queue" else {}
    queue = await keyed(edge, binding=binding)
    assert await hands.send(b"hello", id=5) is Result.SUCCESS
    assert await hands.send(b"hello", id=5) is Result.SUCCESS
    assert await hands.send(b"other", id=5) is Result.FAILURE
    assert await edge.bodies(queue) == [b"hello"]


async def test_repeated_id_with_other_content_is_a_clash(machines: Machines, hands: HandSender) -> None:
    """Check that a repeated id with other content is a clash: FAILURE and an alarm (2.3)."""
    edge = await machines.receiver()
    queue = await keyed(edge)
    assert await hands.send(b"hello", id=5) is Result.SUCCESS
    assert await hands.send(b"other", id=5) is Result.FAILURE
    assert await edge.bodies(queue) == [b"hello"]
    assert edge.value("penstock_rqp_cast_id_clashes_total") == 1
    assert len(edge.log.events("cast_id_clash", peer=HERE, id=5)) == 1


async def test_repeated_id_for_another_key_is_a_clash(machines: Machines, hands: HandSender) -> None:
    """Check that a repeated id for another key is a clash: the key is compared too (2.3)."""
    edge = await machines.receiver(duplicate_result="success")
    await keyed(edge)
    other = await keyed(edge, "other", key=8)
    assert await hands.send(b"hello", id=5) is Result.SUCCESS
    offer = await hands.asked(8)
    await hands.approve(offer, id=5)
    await hands.data(offer, b"hello", key=8)
    assert (await hands.end()).result is Result.FAILURE
    assert await edge.bodies(other) == []
    assert edge.value("penstock_rqp_cast_id_clashes_total") == 1


async def test_replicas_share_remembered_ids(machines: Machines, hands: HandSender) -> None:
    """Check that replicas share remembered ids, stored in the same step as the insertion (5.4)."""
    first = await machines.receiver()
    queue = await keyed(first)
    assert await hands.send(b"hello", id=5) is Result.SUCCESS
    await first.service.stop_taking()
    await machines.receiver()
    assert await hands.send(b"hello", id=5) is Result.FAILURE
    assert await first.bodies(queue) == [b"hello"]


async def test_id_is_forgotten_after_the_dedupe_window(machines: Machines, hands: HandSender) -> None:
    """Check that an id is forgotten after dedupe_window (5.4)."""
    edge = await machines.receiver(dedupe_window_s=0.3, hold_margin_s=0.1)
    queue = await keyed(edge)
    assert await hands.send(b"hello", id=5) is Result.SUCCESS
    await asyncio.sleep(0.5)
    assert await hands.send(b"hello", id=5) is Result.SUCCESS
    assert len(await edge.bodies(queue)) == 2


async def test_ids_are_per_sender(machines: Machines, hands: HandSender) -> None:
    """Check that ids are per sender: an id is unique on its sender's machine only (2.3)."""
    edge = await machines.receiver()
    queue = await keyed(edge)
    assert await hands.send(b"hello", id=5) is Result.SUCCESS
    with HandSender(machines.net, "127.0.0.5") as others:
        assert await others.send(b"hello", id=5) is Result.SUCCESS
    assert len(await edge.bodies(queue)) == 2


@pytest.mark.parametrize("quality", QUALITIES)
async def test_queue_that_became_full(machines: Machines, hands: HandSender, quality: Quality) -> None:
    """Check messages for a queue that became full (5.5, 5.6).

    A certain one gets FAILURE, as its sender has it; an uncertain one becomes a dead letter.
    """
    edge = await machines.receiver()
    queue = await keyed(edge, maxLength=1)
    offer = await chosen(hands, quality)
    holder = (await edge.stats(queue))["reserved_by"]
    await put_as(edge, queue, holder, b"first")
    await hands.data(offer, b"second")
    await until(lambda: ended(edge, "full") == 1)
    await ends(hands, quality, Result.FAILURE)
    wanted = [("rejected_full", "full", b"second")] if quality is Quality.LOW_QUALITY else []
    assert await letters(edge, queue) == wanted
    assert await edge.bodies(queue) == [b"first"]
