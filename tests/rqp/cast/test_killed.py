"""Agents of RQP/cast killed in each state: another replica takes over (rqp_cast.md 2.3, 3.2, 4.2)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from protos.rqp_cast import AcceptReceiverMsg, Result
from services.store import Queue
from tests.live import until
from tests.rqp.cast.hands import HandReceiver, HandSender
from tests.rqp.cast.machines import Machines
from tests.rqp.cast.net import HERE, THERE, Net, is_reserved, keyed, remote
from tests.rqp.live import LiveEdge
from tests.rqp.program import EdgeProgram
from tests.servers import Server

SHORT = {  # s: time until leases of a dead process are released, on a busy machine
    "outbox": {"lease_s": 1.5, "renew_s": 0.3},
    "store": {"session_timeout_s": 1.0, "heartbeat_s": 0.2, "sweep_s": 0.2},
}
REPLICA = "127.0.0.4"
NewServer = Callable[[], Awaitable[Server]]


def program(server: Server, net: Net, folder: Path, host: str, *asked: str, **cast: Any) -> EdgeProgram:
    """Return an edge in a separate process, to be killed."""
    return EdgeProgram(server.url, folder, {"cast": net.machine(host, *asked, **cast), **SHORT})


async def outgoing(edge: LiveEdge) -> Queue:
    """Create a transmission queue with short leases."""
    return await remote(edge, spec={"visibilityTimeout": "100ms"})


async def until_asked(receiver: HandReceiver) -> AcceptReceiverMsg:
    return await receiver.chosen()


async def until_in_the_middle(receiver: HandReceiver) -> AcceptReceiverMsg:
    approval = await until_asked(receiver)
    await receiver.octets(await receiver.accept(receiver.data_port))
    return approval


async def until_sent(receiver: HandReceiver) -> AcceptReceiverMsg:
    approval = await until_asked(receiver)
    await receiver.data()
    return approval


@pytest.mark.parametrize("reach", [None, until_asked, until_in_the_middle, until_sent])
async def test_killed_sender_is_replaced_with_the_same_id(
    new_server: NewServer,
    machines: Machines,
    receiver: HandReceiver,
    tmp_path: Path,
    reach: Callable[[HandReceiver], Awaitable[AcceptReceiverMsg]] | None,
) -> None:
    """Check that a sender killed in any state is replaced with the same id and address (2.3, 4.2)."""
    server = await new_server()
    looker = await machines.receiver("127.0.0.9", server, receives=False)
    async with program(server, machines.net, tmp_path, HERE, THERE, receives=False) as doomed:
        queue = await outgoing(looker)
        await looker.put(queue, b"hello")
        if reach is None:
            await receiver.question()
            first = None
        else:
            first = await reach(receiver)
        await doomed.kill()
    receiver.asked()
    receiver.other = REPLICA
    receiver.data_port.close()
    receiver.data_port = receiver.listen()
    await machines.sender(REPLICA, server, edge=SHORT)
    approval = await until_asked(receiver)
    assert approval.address == HERE
    assert first is None or approval.id == first.id
    assert (await receiver.data())[12:] == b"hello"
    await receiver.confirm(approval, Result.SUCCESS)
    await until(lambda: looker.is_empty(queue))


async def test_sent_message_stays_bound_after_a_crash(
    new_server: NewServer, machines: Machines, receiver: HandReceiver, tmp_path: Path
) -> None:
    """Check that a sent message stays bound after a crash (4.2).

    Its receiver was stored before the first octet was sent; only that receiver is asked.
    """
    server = await new_server()
    looker = await machines.receiver("127.0.0.9", server, receives=False)
    asked = (THERE, "127.0.0.3")
    with HandReceiver(machines.net, "127.0.0.3", REPLICA) as other:
        async with program(server, machines.net, tmp_path, HERE, *asked, receives=False) as doomed:
            queue = await outgoing(looker)
            await looker.put(queue, b"hello")
            await until_in_the_middle(receiver)
            await doomed.kill()
        receiver.asked()
        other.asked()
        receiver.other = REPLICA
        await machines.sender(REPLICA, server, asks=asked, edge=SHORT)
        await receiver.question()
        assert other.asked() == 0


async def test_killed_receiver_frees_its_queue_at_once(
    new_server: NewServer, machines: Machines, hands: HandSender, tmp_path: Path
) -> None:
    """Check that a killed receiver frees its queue at once (3.2).

    Its reservation would last 30 s, but processes of the same machine detect its death.
    """
    server = await new_server()
    looker = await machines.sender("127.0.0.9", server, asks=(), sends=False)
    queue = await keyed(looker)
    async with program(server, machines.net, tmp_path, THERE, sends=False) as doomed:
        offer = await hands.asked()
        await hands.approve(offer, id=5)
        await doomed.kill()
        assert await is_reserved(looker, queue)
    await machines.receiver(server=server)
    assert await until(lambda: answered(hands), 10.0)


async def answered(hands: HandSender) -> bool:
    """Ask once; return whether there was an answer."""
    hands.ask()
    try:
        hands.findreceiver.accept()[0].close()
    except BlockingIOError:
        return False
    return True


async def test_duplicate_after_a_receivers_crash_is_recognized(
    new_server: NewServer, machines: Machines, hands: HandSender, tmp_path: Path
) -> None:
    """Check that another replica recognizes a duplicate after a receiver's crash (5.4, 5.5)."""
    server = await new_server()
    looker = await machines.receiver("127.0.0.9", server)
    queue = await keyed(looker)
    async with program(server, machines.net, tmp_path, THERE, sends=False, reservation_s=1.0) as doomed:
        offer = await hands.asked()
        hands.endtransmission.close()  # the sender does not receive it
        await hands.say(offer.accept_port, _approval(5))
        await hands.data(offer, b"hello")
        await until(lambda: looker.bodies(queue))
        await doomed.kill()
    await machines.receiver(server=server)
    await until(lambda: is_free(looker, queue))  # it may have died before it could report that
    hands.endtransmission = hands.listen()
    assert await hands.send(b"hello", id=5) is Result.FAILURE
    assert await looker.bodies(queue) == [b"hello"]


async def is_free(edge: LiveEdge, queue: Queue) -> bool:
    return not await is_reserved(edge, queue)


def _approval(id: int) -> bytes:
    return b"\x7f\0\0\1" + (9).to_bytes(2, "big") + id.to_bytes(4, "big") + b"\1"
