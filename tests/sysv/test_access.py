"""Test queues that the bridge may not use (docs/operations.md, Who may use a queue; docs/sysv.md 3.4)."""

from __future__ import annotations

import asyncio

from tests.live import until
from tests.sysv.live import LiveBridge
from tests.sysv.local import take_all
from tests.sysv.program import Program
from tests.sysv.test_outbound import out, sent

OTHERS = {"edges": ["tmq"]}
OURS = {"edges": ["tmq", "sysv"]}


def waits(bridge: LiveBridge) -> float:
    return bridge.value("penstock_sysv_waits_total", mapping="orders", reason="access_denied")


async def test_refused_message_waits_in_the_journal(bridge: LiveBridge, key: int, program: Program) -> None:
    """Check that a refused message stays in the journal until the queue's document allows it."""
    queue = await bridge.queue("orders", access=OTHERS)
    await bridge.open(out(key))
    await sent(program, key, 1, b"one")
    await until(lambda: waits(bridge) == 1)
    assert await bridge.bodies(queue) == []
    await bridge.queue("orders", access=OURS)
    await until(lambda: bridge.value("penstock_sysv_messages_total", mapping="orders") == 1)
    assert await bridge.bodies(queue) == [b"one"]


async def test_unreadable_message_stays_in_the_local_queue(bridge: LiveBridge, key: int) -> None:
    queue = await bridge.queue("orders", access=OTHERS)
    await bridge.put(queue, b"one")
    await bridge.open({"orders": {"key": key, "queue": "orders", "direction": "in"}})
    await until(lambda: waits(bridge) == 1)
    assert await bridge.bodies(queue) == [b"one"]
    await bridge.queue("orders", access=OURS)
    found: list[object] = []
    async with asyncio.timeout(20):
        while not found:
            found += take_all(key)
            await asyncio.sleep(0.01)
    assert await bridge.bodies(queue) == []
