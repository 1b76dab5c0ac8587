"""Test inbound mappings while the bridge or the store stops (docs/sysv.md 2.3, 2.6, 4.4)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from services.store import Store
from services.store.pipeline.messages import Messages
from services.sysv.bridge import DRAIN_S
from services.sysv.kernel import msgmax
from tests.live import until
from tests.servers import Server
from tests.sysv.live import LiveBridge
from tests.sysv.local import Keys, existing, take_all
from tests.sysv.test_inbound import CARRIED, into, settled

# leases of dead sessions return soon
SOON = {"store": {"session_timeout_s": 1, "heartbeat_s": 0.3, "sweep_s": 0.2}}


async def test_held_messages_are_returned_at_the_end(bridge: LiveBridge, key: int) -> None:
    """Check that held messages return to their places at once and unchanged (2.3, 4.4)."""
    queue = await bridge.queue("orders")
    bodies = [b"%d" % number + bytes(8000) for number in range(5)]
    await bridge.put(queue, *bodies)
    await bridge.open(into(key))
    await until(lambda: bridge.log.events("sysv_waits", reason="local_queue_full"))
    await bridge.stop()
    assert await bridge.bodies(queue) == bodies[2:]
    assert [body for body, _ in take_all(key)] == bodies[:2]
    stats = await bridge.stats(queue)
    assert (stats["in_flight"], stats["acked"]) == (0, 2)


async def test_messages_taken_after_the_end_are_returned(
    own_server: Server, own_bridge: LiveBridge, key: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that messages that a stalled store delivers after the bridge's end, in its live session, return (4.4)."""
    bridge = own_bridge
    real = Messages.take
    asked = asyncio.Event()

    def take(*arguments: Any, **more: Any) -> None:
        own_server.stop()
        asked.set()
        real(*arguments, **more)

    monkeypatch.setattr(Messages, "take", take)
    queue = await bridge.queue("orders")
    await bridge.put(queue, b"1", b"2", b"3")
    opened = await bridge.open(into(key))
    await asked.wait()
    (task,) = opened.tasks
    task.cancel()
    await asyncio.wait({task})
    own_server.cont()

    async def were_given_out_and_came_back() -> bool:
        found = await bridge.tools.get_domain("main").peek(queue, 10)
        return [(one.count, one.acquired) for one in found] == [(1, 1)] * 3

    await until(were_given_out_and_came_back)
    assert await bridge.bodies(queue) == [b"1", b"2", b"3"]
    assert existing(key).current_messages == 0


async def test_sent_messages_are_settled_at_the_end_of_the_drain(
    own_server: Server, own_bridge: LiveBridge, key: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that sent messages are settled in the drain, as they must not be redelivered (2.2, 4.4)."""
    bridge = own_bridge
    real = Messages.reject
    asked = asyncio.Event()

    def reject(*arguments: Any, **more: Any) -> None:
        own_server.stop()
        asked.set()
        real(*arguments, **more)

    monkeypatch.setattr(Messages, "reject", reject)
    queue = await bridge.queue("orders")
    await bridge.put(queue, b"sent", bytes(msgmax() + 1), b"held")
    opened = await bridge.open(into(key))
    await asked.wait()
    (task,) = opened.tasks
    task.cancel()
    await asyncio.wait({task})
    own_server.cont()
    await settled(bridge, 1)
    assert take_all(key) == [(b"sent", 1)]
    assert await bridge.bodies(queue) == [b"held"]
    assert [letter.reason for letter in await bridge.dead(queue)] == ["unencodable"]


async def test_shutdown_while_the_store_is_stopped(
    own_server: Server, own_bridge: LiveBridge, key: int
) -> None:
    """Check that shutdown with a stopped store takes about 5 s; sent, unsettled messages are redelivered (2.2, 4.4)."""
    bridge = own_bridge
    queue = await bridge.queue("orders", visibilityTimeout="1s")
    bodies = [b"%d" % number + bytes(8000) for number in range(6)]
    await bridge.put(queue, *bodies)
    await bridge.open(into(key), **SOON)
    await until(lambda: bridge.log.events("sysv_waits", reason="local_queue_full"))
    await settled(bridge, 2)
    own_server.stop()
    found = {body for body, _ in take_all(key)}
    await until(lambda: existing(key).current_messages == 2)
    stopping = asyncio.create_task(bridge.stop())
    await asyncio.wait({stopping}, timeout=DRAIN_S + 5)
    has_ended = stopping.done()
    own_server.cont()
    await stopping
    assert has_ended
    await bridge.open(into(key), **SOON)

    def all_were_there() -> bool:
        found.update(body for body, _ in take_all(key))
        return found == set(bodies)

    await until(all_were_there)


async def test_store_outage_is_waited_for(own_server: Server, own_bridge: LiveBridge, keys: Keys) -> None:
    """Check that both directions wait for the store, and receive only messages that were on their way (2.6, 3.4)."""
    bridge = own_bridge
    requests, replies = await bridge.queue("requests"), await bridge.queue("replies")
    into_key, out_key = keys.new(), keys.new()
    opened = await bridge.open(
        {
            "requests": {"key": into_key, "queue": "requests", "direction": "in"},
            "replies": {"key": out_key, "queue": "replies", "direction": "out"},
        },
        store={"patience_s": 0.2},
    )
    await bridge.put(requests, b"before")
    await until(lambda: existing(into_key).current_messages)
    own_server.kill9()
    await until(lambda: opened.readiness.unready() is not None)
    for number in range(5):
        existing(out_key).send(b"%d" % number)
    await until(lambda: bridge.log.events("sysv_waits", reason="store_unavailable", mapping="replies"))
    assert existing(out_key).current_messages == 4
    own_server.restart()
    await until(lambda: opened.readiness.unready() is None)
    tools = Store(own_server.url, "test")
    await until(lambda: bridge.value(CARRIED, mapping="replies") == 5)
    assert await bridge.bodies(replies) == [b"%d" % number for number in range(5)]
    await bridge.put(requests, b"after")
    await until(lambda: existing(into_key).current_messages == 2)
    assert take_all(into_key) == [(b"before", 1), (b"after", 1)]
    await tools.close()
