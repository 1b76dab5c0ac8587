"""The sending agent of RQP/cast with a test receiver (rqp_cast.md 3, 4)."""

from __future__ import annotations

import asyncio

import pytest

from protos.rqp_cast import Quality, Result
from services.rqp.cast.sending.prefetch_buffer import WANTED
from services.store.model import records
from tests.live import PATIENCE_S, until
from tests.rqp.cast.hands import HandReceiver
from tests.rqp.cast.machines import Machines
from tests.rqp.cast.net import HERE, THERE, failed, got_through, remote, unheard
from tests.tls_hello import client_hello


async def test_a_certain_message_is_removed_once_it_is_confirmed(
    machines: Machines, receiver: HandReceiver
) -> None:
    """Check that a certain message is removed once it is confirmed, and not before (3, 4.2)."""
    edge = await machines.sender(t_wait1_s=PATIENCE_S)
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    question = await receiver.question()
    assert (question.address, question.key) == (HERE, 7)
    await receiver.offer()
    approval = await receiver.approval()
    assert approval.address == HERE
    assert approval.msg_type is Quality.HIGH_QUALITY
    assert approval.id
    assert await receiver.data() == b"\x7f\0\0\1" + b"\0\0\0\7" + b"\0\0\0\5" + b"hello"
    assert (await edge.stats(queue))["in_flight"] == 1
    await receiver.confirm(approval, Result.SUCCESS)
    await until(lambda: edge.is_empty(queue))
    assert got_through(edge) == 1
    assert await edge.dead(queue) == []


async def test_uncertain_message_is_removed_once_sent(machines: Machines, receiver: HandReceiver) -> None:
    """Check that an uncertain message is removed once sent, with ZERO_ID in id and port (2.3, 4.1)."""
    edge = await machines.sender()
    queue = await remote(edge, reliable=False)
    await edge.put(queue, b"perhaps")
    approval = await receiver.chosen()
    assert (approval.endtransmission_port, approval.id, approval.msg_type) == (0, 0, Quality.LOW_QUALITY)
    assert (await receiver.data())[12:] == b"perhaps"
    await until(lambda: edge.is_empty(queue))


async def test_attribute_overrides_certainty(machines: Machines, receiver: HandReceiver) -> None:
    """Check that an attribute overrides certainty, as the msg_type of a T_MSG does (2.1, 4.3)."""
    edge = await machines.sender()
    queue = await remote(edge)
    await edge.put_records(queue, records.encode(b"perhaps", {"certain": False}))
    approval = await receiver.chosen()
    assert approval.msg_type is Quality.LOW_QUALITY
    assert (await receiver.data())[12:] == b"perhaps"


async def test_id_is_stored_before_anything_is_sent(machines: Machines, receiver: HandReceiver) -> None:
    """Check that the id is stored before anything is sent (2.3).

    It is stored with the agent's stable address, for a replica that takes over.
    """
    edge = await machines.sender(address="10.9.8.7")
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    assert (await receiver.question()).address == "10.9.8.7"
    await edge.service.stop_taking()
    (delivery,) = await edge.tools.get_domain(queue.domain).peek(queue, 1)
    assert delivery.note.startswith("cast1:")
    assert delivery.note.endswith(":10.9.8.7:0:-:-:-")


async def test_no_answer_within_t_wait1(machines: Machines, receiver: HandReceiver) -> None:
    """Check that without an answer within T_WAIT1 a certain message moves to the end (4.1).

    The next question comes T_WAIT1 after the last one.
    """
    edge = await machines.sender(t_wait1_s=0.3)
    queue = await remote(edge)
    await edge.put(queue, b"first", b"second")
    now = asyncio.get_running_loop().time
    await receiver.question()
    began = now()
    await until(lambda: edge.has_condition(queue, "no_answer: no machine answers for key 7"))
    approval = await receiver.chosen()
    assert now() - began > 0.2
    assert (await receiver.data())[12:] == b"second"
    await receiver.confirm(approval, Result.SUCCESS)
    assert await receiver.receive() == b"first"
    await until(lambda: edge.is_empty(queue))
    assert failed(edge, "no_answer") == 1
    await until(lambda: edge.has_no_condition(queue))


async def test_an_uncertain_message_without_answer_is_put_back(
    machines: Machines, receiver: HandReceiver
) -> None:
    """Check that an uncertain message without answer is put back before those leased with it (4.1).

    All are sent once there is an answer.
    """
    edge = await machines.sender()
    queue = await remote(edge, reliable=False)
    await edge.put(queue, *(b"%d" % number for number in range(WANTED + 8)))
    await receiver.question()
    await until(lambda: failed(edge, "no_answer") == 1)
    for number in range(WANTED + 8):
        await receiver.chosen()
        assert (await receiver.data())[12:] == b"%d" % number
    await until(lambda: edge.is_empty(queue))
    assert failed(edge, "no_answer") == 1


async def test_a_certain_message_without_answer_moves_to_the_end(
    machines: Machines, receiver: HandReceiver
) -> None:
    """Check that a certain message without answer moves behind all waiting ones, not only prefetched ones (4.1)."""
    edge = await machines.sender()
    queue = await remote(edge)
    await edge.put(queue, *(b"%d" % number for number in range(WANTED + 8)))
    await receiver.question()
    await until(lambda: failed(edge, "no_answer") == 1)
    for number in (*range(1, WANTED + 8), 0):
        assert await receiver.receive() == b"%d" % number
    await until(lambda: edge.is_empty(queue))
    assert failed(edge, "no_answer") == 1


async def test_the_first_answer_counts(machines: Machines, receiver: HandReceiver) -> None:
    """Check that the first answer counts, and others get nothing (3.3)."""
    edge = await machines.sender(asks=(THERE, "127.0.0.3"), t_wait1_s=PATIENCE_S)
    queue = await remote(edge)
    with HandReceiver(machines.net, "127.0.0.3") as late:
        await edge.put(queue, b"hello")
        await receiver.question()
        await late.question()
        await receiver.offer()
        approval = await receiver.approval()
        await late.offer(address="127.0.0.3")
        await until(lambda: unheard(edge, "not_asked") == 1)
        assert (await receiver.data())[12:] == b"hello"
        await receiver.confirm(approval, Result.SUCCESS)
        await until(lambda: edge.is_empty(queue))


async def test_an_answer_that_is_not_taken_is_declined(machines: Machines, receiver: HandReceiver) -> None:
    """Check that an unused answer is declined by an empty connection: its receiver need not wait for T_WAIT2 (3.3)."""
    edge = await machines.sender()
    queue = await remote(edge)
    await receiver.offer(key=8)
    assert await receiver.is_declined()
    await edge.put(queue, b"hello")
    assert await receiver.receive() == b"hello"
    await receiver.offer()
    assert await receiver.is_declined()


async def test_a_group_whose_answers_are_not_declined(machines: Machines, receiver: HandReceiver) -> None:
    """Check that declining can be disabled for a group (3.3)."""
    group = {"old": {"addresses": [machines.net.at(THERE)], "decline": False}}
    edge = await machines.sender(asks=(), peers=group, t_wait1_s=PATIENCE_S)
    queue = await remote(edge)
    await receiver.offer()
    await until(lambda: unheard(edge, "not_asked") == 1)
    await edge.put(queue, b"hello")
    await receiver.question()
    await receiver.offer()
    assert not await receiver.is_declined(), "the first connection is that of the approval"


async def test_unrequested_answers_are_counted(machines: Machines, receiver: HandReceiver) -> None:
    """Check that unrequested answers are counted (1.1).

    `not_listed`: from an unlisted machine; `not_asked`: for another key.
    """
    edge = await machines.sender(t_wait1_s=PATIENCE_S)
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    await receiver.question()
    await receiver.offer(host="127.0.0.77")
    await until(lambda: unheard(edge, "not_listed") == 1)
    foreign = await receiver.connect(machines.net.findreceiver_port, "127.0.0.77")
    assert await receiver.is_closed(foreign), "without an octet"
    assert unheard(edge, "not_listed") == 2
    await receiver.offer(key=8)
    await until(lambda: unheard(edge, "not_asked") == 1)
    await receiver.offer()
    approval = await receiver.approval()
    await receiver.data()
    await receiver.confirm(approval, Result.SUCCESS)
    await until(lambda: edge.is_empty(queue))


async def test_only_the_groups_of_a_queue_are_asked(machines: Machines, receiver: HandReceiver) -> None:
    """Check that only the groups of a queue are asked, and answers of others do not count (1.1, 3.1).

    The groups are in `remote.peers`.
    """
    groups = {
        "near": {"addresses": [machines.net.at(THERE)]},
        "far": {"addresses": [machines.net.at("127.0.0.3")]},
    }
    edge = await machines.sender(asks=(), peers=groups, t_wait1_s=PATIENCE_S)
    queue = await remote(edge, peers=["near"])
    with HandReceiver(machines.net, "127.0.0.3") as other:
        await edge.put(queue, b"hello")
        await receiver.question()
        await other.offer(address="127.0.0.3")
        await until(lambda: unheard(edge, "not_listed") == 1)
        await receiver.offer()
        approval = await receiver.approval()
        await receiver.data()
        await receiver.confirm(approval, Result.SUCCESS)
        await until(lambda: edge.is_empty(queue))
        assert other.asked() == 0


async def test_malformed_answers_are_counted(machines: Machines, receiver: HandReceiver) -> None:
    """Check that malformed answers are closed and counted, and the attempt keeps waiting (2.1)."""
    edge = await machines.sender(t_wait1_s=2.0)
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    await receiver.question()
    for octets, reason in ((b"\x7f\0", "truncated"), (b"\x7f\0\0\2\0\0\0\0\0\7\1\1", "zero_port")):
        await receiver.say(machines.net.findreceiver_port, octets)
        await until(lambda reason=reason: edge.value("penstock_rqp_cast_faults_total", reason=reason) == 1)
    await receiver.connect(machines.net.findreceiver_port)  # sends nothing
    await receiver.offer()
    approval = await receiver.approval()
    await receiver.data()
    await receiver.confirm(approval, Result.SUCCESS)
    await until(lambda: edge.is_empty(queue))
    await until(lambda: edge.value("penstock_rqp_cast_faults_total", reason="no_message") == 1)


PROXY = b"PROXY TCP4 10.0.0.9 10.0.0.1 4711 2999\r\n"


async def test_wrong_protocols_are_reported(
    machines: Machines, receiver: HandReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    """Check that wrong protocols are reported at findreceiver_port and the confirmation port.

    Examples are a load balancer's header and TLS.
    """
    edge = await machines.sender(t_wait1_s=PATIENCE_S)
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    await receiver.question()
    port = machines.net.findreceiver_port
    for octets in (client_hello(), PROXY):
        await receiver.say(port, octets)
    await until(lambda: edge.refusals() == {"proxy_header": 1, "tls_at_a_plain_port": 1})
    await receiver.offer()
    approval = await receiver.approval()
    await receiver.data()
    await receiver.say(approval.endtransmission_port, client_hello())
    await until(lambda: edge.refusals() == {"proxy_header": 1, "tls_at_a_plain_port": 2})
    await receiver.confirm(approval, Result.SUCCESS)
    await until(lambda: edge.is_empty(queue))
    results = [record for record in caplog.records if getattr(record, "action", "") == "refused"]
    assert [(record.reason, record.peer) for record in results] == [  # type: ignore[attr-defined]
        ("tls_at_a_plain_port", THERE),
        ("proxy_header", THERE),
        ("tls_at_a_plain_port", THERE),
    ]
    assert "PROXY protocol header (version 1)" in results[1].detail  # type: ignore[attr-defined]


async def test_addresses_are_omitted_if_configured(machines: Machines, receiver: HandReceiver) -> None:
    """Check that addresses are omitted if configured (2.2)."""
    group = {"quiet": {"addresses": [machines.net.at(THERE)], "omit_address": True}}
    edge = await machines.sender(asks=(), peers=group, t_wait1_s=PATIENCE_S)
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    await receiver.question()
    await receiver.offer(address=None)
    approval = await receiver.approval(omit_address=True)
    assert await receiver.data() == b"\0\0\0\7" + b"\0\0\0\5" + b"hello"
    end = approval.id.to_bytes(4, "big") + b"\1"
    await receiver.say(approval.endtransmission_port, end)
    await until(lambda: edge.is_empty(queue))


async def test_a_damaged_message_goes_to_the_dead_letters(machines: Machines, receiver: HandReceiver) -> None:
    """Check that a damaged message goes straight to the dead letters as `injured`; the next one is sent (4.3)."""
    edge = await machines.sender()
    queue = await remote(edge)
    await edge.put_records(queue, b"\1\0\0\3\0\xffx", records.encode(b"good"))
    assert await receiver.receive() == b"good"
    (letter,) = await edge.dead(queue)
    assert letter.reason == "injured"


async def test_large_message_is_sent_whole(machines: Machines, receiver: HandReceiver) -> None:
    """Check that a message larger than the kernel's buffers is sent whole (3.4)."""
    edge = await machines.sender()
    body = bytes(range(256)) * (8 << 12)
    queue = await remote(edge, maxMessageBytes=len(body))
    await edge.put(queue, body)
    assert await receiver.receive() == body
    await until(lambda: edge.is_empty(queue))
