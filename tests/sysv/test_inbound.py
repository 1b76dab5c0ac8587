"""Test carrying messages from Penstock into a local queue (docs/sysv.md 2)."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from services.sysv import kernel
from services.sysv.inbound import WINDOW
from services.sysv.kernel import LocalQueue, Removed, msgmax
from services.sysv.mtype import mtype_of
from tests.live import until
from tests.sysv.live import LiveBridge
from tests.sysv.local import Keys, existing, find, make, take_all
from tests.sysv.namespace import set_limit
from tests.sysv.program import Program

CARRIED = "penstock_sysv_messages_total"


def into(key: int, queue: str = "orders", **more: Any) -> dict[str, dict[str, Any]]:
    return {"orders": {"key": key, "queue": queue, "direction": "in", **more}}


async def settled(bridge: LiveBridge, number: int) -> None:
    queue = await bridge.tools.catalogue.find("orders")

    async def is_so() -> bool:
        return bool((await bridge.stats(queue))["acked"] == number)

    await until(is_so)


async def test_program_receives_a_message_of_the_queue(
    bridge: LiveBridge, key: int, program: Program
) -> None:
    """Check that a program receives messages in order with their mtype (2.1, 2.5), also those that arrive later."""
    queue = await bridge.queue("orders")
    await bridge.put(queue, b"one", b"two", b"")
    await bridge.put(queue, b"urgent", mtype=9, colour="red")
    await bridge.open(into(key))
    await until(lambda: bridge.value(CARRIED, mapping="orders") == 4)
    await bridge.put(queue, b"later")
    found = await asyncio.to_thread(program.receive, key, 5)
    assert found == [(b"one", 1), (b"two", 1), (b"", 1), (b"urgent", 9), (b"later", 1)]
    await settled(bridge, 5)


@pytest.mark.parametrize(
    ("given", "mtype"),
    [
        *((1, 1), (2**31, 2**31), (2**63 - 1, 2**63 - 1), ("42", 42), (str(2**62), 2**62)),
        *((other, 1) for other in (0, -5, 2**63, str(2**63), "high", "²", None, True, 3.0, b"7")),
    ],
)
def test_mtype_comes_from_the_attribute(given: object, mtype: int) -> None:
    """Check that mtype is taken from the attribute `mtype`, or else from `priority` (2.5)."""
    assert mtype_of({"mtype": given}) == mtype_of({"priority": given}) == mtype
    assert mtype_of({"mtype": 9, "priority": given}) == 9
    assert mtype_of({"mtype": "none", "priority": given}) == mtype


@pytest.mark.parametrize("mtype", [2**31, 2**62, 2**63 - 1])
async def test_mtype_is_carried_between_local_queues(
    bridge: LiveBridge, key: int, keys: Keys, program: Program, mtype: int
) -> None:
    """Check that any mtype that fits in `long` is carried (2.5, 3.1)."""
    make(from_key := keys.new())
    await bridge.queue("orders")
    await asyncio.to_thread(program.send, from_key, mtype, b"one")
    await bridge.open({**into(key), "from": {"key": from_key, "queue": "orders", "direction": "out"}})
    assert await asyncio.to_thread(program.receive, key, 1) == [(b"one", mtype)]


async def test_unrepresentable_mtype_goes_to_the_dead_letters(
    bridge: LiveBridge, key: int, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that an mtype that does not fit in a `long` of 32 bits makes a dead letter (2.5)."""
    monkeypatch.setattr(kernel, "MAX_MTYPE", 2**31 - 1)
    queue = await bridge.queue("orders")
    await bridge.put(queue, b"too high", mtype=2**31)
    await bridge.put(queue, b"behind", mtype=2**31 - 1)
    await bridge.open(into(key))
    assert await asyncio.to_thread(program.receive, key, 1) == [(b"behind", 2**31 - 1)]
    (letter,) = await bridge.dead(queue)
    assert (letter.body, letter.reason) == (b"too high", "unencodable")
    assert "type 2,147,483,648 does not fit" in letter.error


async def test_full_local_queue_is_waited_for(bridge: LiveBridge, key: int, program: Program) -> None:
    """Check that messages for a full local queue wait in order, leased and not settled (2.3)."""
    queue = await bridge.queue("orders")
    bodies = [b"%04d" % number + bytes(4000) for number in range(3 * WINDOW)]
    await bridge.put(queue, *bodies)
    await bridge.open(into(key))
    await until(lambda: bridge.log.events("sysv_waits", reason="local_queue_full"))
    inside = existing(key).current_messages
    await settled(bridge, inside)
    stats = await bridge.stats(queue)
    assert stats["in_flight"] == WINDOW - inside
    found = await asyncio.to_thread(program.receive, key, len(bodies))
    assert [body for body, _ in found] == bodies
    await settled(bridge, len(bodies))
    assert bridge.log.events("sysv_goes_on", reason="local_queue_full")


@pytest.mark.parametrize("bound", ["msgmax", "msg_qbytes"])
async def test_unsendable_message_goes_to_the_dead_letters(bridge: LiveBridge, key: int, bound: str) -> None:
    """Check that a message above msgmax or msg_qbytes becomes a dead letter (2.4)."""
    limit = msgmax()
    if bound == "msg_qbytes":
        limit = 100
        make(key).max_size = limit
    queue = await bridge.queue("orders")
    bodies = [b"a" * limit, b"b" * (limit + 1), b"c"]
    await bridge.put(queue, *bodies)
    await bridge.open(into(key))
    await until(lambda: existing(key).current_messages)
    found = take_all(key)
    (letter,) = await until(lambda: bridge.dead(queue))
    assert (letter.reason, letter.body) == ("unencodable", bodies[1])
    assert letter.error == f"the message has {limit + 1:,} octets, the limit of the local queue is {limit:,}"
    await settled(bridge, 2)
    assert [body for body, _ in found + take_all(key)] == [bodies[0], bodies[2]]
    assert bridge.value("penstock_sysv_dead_total", mapping="orders", reason="unencodable") == 1


async def test_lowered_limit_is_noticed_while_a_message_waits(bridge: LiveBridge, key: int) -> None:
    """Check that a limit lowered below a waiting message is noticed: the queue would seem full for ever (2.4)."""
    queue = await bridge.queue("orders")
    await bridge.put(queue, *[b"x" * 8000] * 3)
    await bridge.open(into(key))
    await until(lambda: bridge.log.events("sysv_waits", reason="local_queue_full"))
    existing(key).max_size = 7999
    (letter,) = await until(lambda: bridge.dead(queue))
    assert letter.reason == "unencodable"


@pytest.mark.usefixtures("own_kernel")
async def test_lowered_msgmax_is_respected(bridge: LiveBridge, key: int) -> None:
    """Check that a message above a lowered msgmax is a dead letter, although msgsnd fails as for a lost queue (2.4)."""
    queue = await bridge.queue("orders")
    await bridge.put(queue, bytes(5000))
    await bridge.open(into(key))
    await settled(bridge, 1)
    set_limit("msgmax", 4000)
    await bridge.put(queue, b"x" * 4500, b"after")
    (letter,) = await until(lambda: bridge.dead(queue))
    assert (letter.reason, letter.body) == ("unencodable", b"x" * 4500)
    assert letter.error == "the message has 4,500 octets, the limit of the local queue is 4,000"
    await settled(bridge, 2)
    set_limit("msgmax", 4500)  # read again
    await bridge.put(queue, b"x" * 4500)
    await settled(bridge, 3)


async def test_repeatedly_removed_local_queue_is_reopened(
    bridge: LiveBridge, key: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a queue that is removed repeatedly blocks nothing else, and its message returns at the end (2.6)."""

    tries: list[object] = []

    def send(*_: object) -> bool:
        tries.append(None)
        assert len(tries) < 10_000, "the bridge retries without a pause"
        raise Removed("removed", "it was removed")

    monkeypatch.setattr(LocalQueue, "send", send)
    queue = await bridge.queue("orders")
    await bridge.put(queue, b"x")
    await bridge.open(into(key))
    await until(lambda: len(tries) > 3)
    await bridge.stop()
    assert await bridge.bodies(queue) == [b"x"]


async def test_at_most_once_queue_is_leased(bridge: LiveBridge, key: int) -> None:
    """Check that messages of an at-most-once queue are leased until they are sent (2.1)."""
    queue = await bridge.queue("orders", delivery="at-most-once")
    bodies = [b"%d" % number + bytes(8000) for number in range(4)]
    await bridge.put(queue, *bodies)
    await bridge.open(into(key))
    await until(lambda: bridge.log.events("sysv_waits", reason="local_queue_full"))
    await bridge.stop()
    assert await bridge.bodies(queue) == bodies[2:]


async def test_message_for_a_missing_local_queue_is_not_held(bridge: LiveBridge, key: int) -> None:
    """Check that a message for a missing local queue is returned, so that other consumers can take it (2.6)."""
    queue = await bridge.queue("orders")
    make(key)
    await bridge.open(into(key, create=False), retry_s=60)
    existing(key).remove()
    await bridge.put(queue, b"1", b"2", b"3")
    await until(lambda: bridge.log.events("sysv_waits", reason="missing"))
    got: list[bytes] = []
    while len(got) < 3:  # the log line is written shortly before the messages are back
        got += await until(partial(bridge.take_all, queue))
    assert got == [b"1", b"2", b"3"]


async def test_removed_local_queue_is_reopened(bridge: LiveBridge, key: int) -> None:
    """Check that a removed local queue is created again with `create` (2.6)."""
    queue = await bridge.queue("orders")
    await bridge.open(into(key))
    existing(key).remove()
    await bridge.put(queue, b"after")
    await until(lambda: find(key) and existing(key).current_messages)
    assert take_all(key) == [(b"after", 1)]


async def test_local_queue_removed_while_idle_is_reopened(bridge: LiveBridge, key: int) -> None:
    """Check that a queue that was removed while idle is created again, also repeatedly (2.6)."""
    await bridge.queue("orders")
    await bridge.open(into(key))
    for _ in range(2):
        existing(key).remove()
        await until(lambda: find(key))
    assert not bridge.log.events("sysv_waits")


async def test_missing_local_queue_is_logged_once(
    bridge: LiveBridge, key: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a missing local queue is logged once (2.6, 4.2)."""
    real, tries = LocalQueue.open, []

    def count_and_open(local: LocalQueue) -> None:
        tries.append(None)
        real(local)

    monkeypatch.setattr(LocalQueue, "open", count_and_open)
    await bridge.queue("orders")
    make(key)
    await bridge.open(into(key, create=False))
    existing(key).remove()
    await until(lambda: bridge.log.events("sysv_waits", reason="missing"))
    await until(lambda: len(tries) > 5)
    make(key)
    await until(lambda: bridge.log.events("sysv_goes_on", reason="missing"))
    assert len(bridge.log.events("sysv_waits")) == 1


async def test_missing_queue_without_create_is_waited_for(bridge: LiveBridge, key: int) -> None:
    """Check that a queue without `create` is waited for, while the message can be taken by others (2.6, 4.2)."""
    queue = await bridge.queue("orders")
    make(key)
    await bridge.open(into(key, create=False))
    existing(key).remove()
    await bridge.put(queue, b"after")
    await until(lambda: bridge.log.events("sysv_waits", reason="missing"))
    make(key)
    await until(lambda: existing(key).current_messages)
    assert take_all(key) == [(b"after", 1)]
    await settled(bridge, 1)


async def test_several_queues_into_one(bridge: LiveBridge, key: int) -> None:
    """Check that several queues can be carried into one local queue (1.2)."""
    first, second = await bridge.queue("orders"), await bridge.queue("others")
    await bridge.open(
        {**into(key), "others": {"key": key, "queue": "others", "direction": "in"}},
    )
    await bridge.put(first, b"1")
    await bridge.put(second, b"2")
    await until(lambda: existing(key).current_messages == 2)
    assert sorted(take_all(key)) == [(b"1", 1), (b"2", 1)]


async def test_loop_of_two_mappings_is_found(bridge: LiveBridge, keys: Keys) -> None:
    """Check that a loop of two mappings, also of queues of two domains, is found (1.2)."""
    requests, replies = await bridge.queue("requests", domain="far"), await bridge.queue("replies")
    into_key, out_key = keys.new(), keys.new()
    await bridge.open(
        {
            "requests": {"key": into_key, "queue": "requests", "direction": "in"},
            "replies": {"key": out_key, "queue": "replies", "direction": "out"},
        }
    )
    await bridge.put(requests, b"what?")
    await until(lambda: existing(into_key).current_messages)
    ((body, _),) = take_all(into_key)
    existing(out_key).send(b"answer to " + body, type=4)
    await until(lambda: bridge.bodies(replies))
    assert await bridge.bodies(replies) == [b"answer to what?"]
