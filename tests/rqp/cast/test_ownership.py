"""The ownership of an outbox by a sending agent of RQP/cast: lost, handed back, taken over (docs/rqp-cast.md)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from protos.rqp_cast import Result
from services.store import Delivery, Source, StoreError
from services.store.pipeline.claims import Claims
from services.store.pipeline.messages import Messages
from tests.live import until
from tests.rqp.cast.hands import HandReceiver
from tests.rqp.cast.machines import Machines
from tests.rqp.cast.net import HERE, THERE, agent, failed, got_through, remote
from tests.rqp.conftest import NewServer


async def test_another_replica_resends_with_the_same_id(machines: Machines, receiver: HandReceiver) -> None:
    """Check that another replica resends with the same id and address, to the same receiver (2.3, 4.2).

    Ownership moves when the first process ends.
    """
    edge = await machines.sender(t_wait4_s=0.3)
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    first = await receiver.chosen()
    await receiver.data()
    await until(lambda: failed(edge, "not_confirmed") == 1)
    await agent(edge).close()
    replica = await machines.sender("127.0.0.4", asks=(THERE, "127.0.0.3"))
    receiver.asked()
    receiver.other = "127.0.0.4"
    second = await receiver.chosen()
    assert (second.id, second.address) == (first.id, HERE)
    assert (await receiver.data())[:4] == b"\x7f\0\0\1"
    await receiver.confirm(second, Result.SUCCESS)
    await until(lambda: edge.is_empty(queue))
    assert got_through(replica) == 1


async def test_lost_ownership_stops_sending_at_once(
    new_server: NewServer, machines: Machines, receiver: HandReceiver
) -> None:
    """Check that lost ownership stops sending before another process can own the queue (docs/rqp-cast.md).

    This includes a message in flight.
    """
    server = await new_server()
    outbox = {"lease_s": 3.0, "renew_s": 0.3}
    edge = await machines.sender(server=server, edge={"outbox": outbox}, t_wait4_s=600.0)
    queue = await remote(edge)
    await edge.put(queue, b"hello")
    approval = await receiver.chosen()
    await receiver.data()
    server.stop()

    async def is_shut() -> bool:
        try:
            (await receiver.connect(approval.endtransmission_port)).close()
        except ConnectionRefusedError:
            return True
        return False

    await until(is_shut)
    server.cont()


async def test_messages_are_returned_before_the_ownership_ends(
    machines: Machines, receiver: HandReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that messages are returned before the ownership ends, so that order is kept (docs/rqp-cast.md, "Order")."""
    order: list[str] = []
    release, disown = Messages.release, Claims.disown

    def slow(pipe: Messages, source: Source, given: list[Delivery], *, done: Any = None, **how: Any) -> None:
        def back(error: StoreError | None) -> None:
            order.append("back")
            done(error)

        # as from a slow store
        later = asyncio.get_running_loop().call_later
        release(pipe, source, given, done=lambda error: later(0.3, back, error), **how)

    async def disowned(*named: Any) -> bool:
        order.append("disowned")
        return await disown(*named)

    edge = await machines.sender()
    queue = await remote(edge)
    await edge.put(queue, b"one", b"two")
    await receiver.question()
    monkeypatch.setattr(Messages, "release", slow)
    monkeypatch.setattr(Claims, "disown", disowned)
    await edge.service.stop_taking()
    assert (order[0], order[-1]) == ("back", "disowned")
