"""Test carrying messages from a local queue into Penstock (docs/sysv.md 3)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from protos.rqp_cast import Quality, TMsg, encode_t_msg
from services.store import DeadLetters
from services.store.model import records
from services.sysv.settings import format_key
from tests.live import until
from tests.sysv.live import LiveBridge
from tests.sysv.local import existing, find, make, take_all
from tests.sysv.program import Program

T_MSG = {"format": "t_msg"}


def out(key: int, queue: str = "orders", **more: Any) -> dict[str, dict[str, Any]]:
    return {"orders": {"key": key, "queue": queue, "direction": "out", **more}}


async def sent(program: Program, key: int, mtype: int, *bodies: bytes) -> None:
    await asyncio.to_thread(program.send, key, mtype, *bodies)


async def carried(bridge: LiveBridge, number: int) -> None:
    await until(lambda: bridge.value("penstock_sysv_messages_total", mapping="orders") == number)


async def test_message_of_a_program_arrives_in_the_queue(
    bridge: LiveBridge, key: int, program: Program
) -> None:
    """Check that messages arrive in order and unchanged with mtype and origin, also empty ones (3.1)."""
    queue = await bridge.queue("orders")
    await bridge.open(out(key))
    await sent(program, key, 7, b"one", b"", b"three")
    await sent(program, key, 2, b"four")
    await carried(bridge, 4)
    contents = await bridge.contents(queue)
    assert [(content.body, content.attributes) for content in contents] == [
        (b"one", {"mtype": 7}),
        (b"", {"mtype": 7}),
        (b"three", {"mtype": 7}),
        (b"four", {"mtype": 2}),
    ]
    (first, *_) = await bridge.tools.get_domain("main").peek(queue, 1)
    assert first.origin == f"sysv {format_key(key)}"
    assert take_all(key) == []


async def test_messages_sent_before_the_start_are_carried(
    bridge: LiveBridge, key: int, program: Program
) -> None:
    """Check that an existing queue is used as it is, and a program waits while it is full (4.2)."""
    make(key)
    before = [b"x" * 4000] * 4
    await sent(program, key, 1, *before)
    sending = asyncio.create_task(sent(program, key, 1, *([b"y" * 4000] * 30)))
    queue = await bridge.queue("orders")
    await bridge.open(out(key))
    await sending
    await carried(bridge, 34)
    assert await bridge.bodies(queue) == before + [b"y" * 4000] * 30


async def test_removed_local_queue_is_reopened(bridge: LiveBridge, key: int, program: Program) -> None:
    """Check that an outbound mapping reopens a removed queue, too (2.6)."""
    queue = await bridge.queue("orders")
    await bridge.open(out(key))
    existing(key).remove()
    await until(lambda: find(key))
    await sent(program, key, 1, b"after")
    await until(lambda: bridge.bodies(queue))
    assert await bridge.bodies(queue) == [b"after"]
    assert bridge.log.events("sysv_reopened")


# While publishing fails, no message is received (3.4)


async def test_full_queue_leaves_messages_in_the_local_queue(
    bridge: LiveBridge, key: int, program: Program
) -> None:
    """Check that one message is in the journal when the queue is found full, and the others stay in the local queue."""
    queue = await bridge.queue("orders", maxLength=1)
    await bridge.open(out(key))
    await sent(program, key, 1, b"1", b"2", b"3", b"4")
    await until(lambda: bridge.log.events("sysv_waits", reason="queue_full", mapping="orders"))
    assert bridge.value("penstock_sysv_waiting", mapping="orders") == 1
    assert existing(key).current_messages == 2
    await bridge.queue("orders", maxLength=0)
    await carried(bridge, 4)
    assert await bridge.bodies(queue) == [b"1", b"2", b"3", b"4"]
    assert bridge.value("penstock_sysv_waiting", mapping="orders") == 0
    assert len(bridge.log.events("sysv_waits")) == 1  # logged once for all tries
    assert bridge.log.events("sysv_goes_on", reason="queue_full")


@pytest.mark.parametrize(("change", "reason"), [({"paused": True}, "queue_paused"), (None, "queue_unknown")])
async def test_paused_or_deleted_queue_is_waited_for(
    bridge: LiveBridge, key: int, program: Program, change: dict[str, Any] | None, reason: str
) -> None:
    queue = await bridge.queue("orders")
    await bridge.open(out(key))
    if change is None:
        await bridge.tools.catalogue.delete(queue)
    else:
        await bridge.queue("orders", **change)
    await sent(program, key, 1, b"1", b"2", b"3")
    await until(lambda: bridge.log.events("sysv_waits", reason=reason))
    assert existing(key).current_messages == 2
    queue = await bridge.queue("orders")
    await carried(bridge, 3)
    assert await bridge.bodies(queue) == [b"1", b"2", b"3"]


@pytest.mark.parametrize("goal", ["orders", "others"])
async def test_message_for_a_deleted_queue(bridge: LiveBridge, key: int, program: Program, goal: str) -> None:
    """Check that a message for a deleted queue is kept, whether queue or mapping changes, and the log says so."""
    queue = await bridge.queue("orders", paused=True)
    await bridge.open(out(key))
    await sent(program, key, 1, b"1", b"2", b"3")
    await until(lambda: bridge.log.events("sysv_waits", reason="queue_paused"))
    await bridge.tools.catalogue.delete(queue)
    (event,) = await until(lambda: bridge.log.events("sysv_waits", reason="queue_unknown"))
    journal = bridge.journal / f"{format_key(key)}.journal"
    assert event.getMessage() == (
        f"queue 'orders' does not exist, and a message for it is in the journal {journal}: create the queue, or "
        f"restart with key {format_key(key)} mapped to another queue, which then gets the message"
    )
    await bridge.stop()
    queue = await bridge.queue(goal)
    await bridge.open(out(key, goal))
    await carried(bridge, 3)
    assert await bridge.bodies(queue) == [b"1", b"2", b"3"]
    redirected = [line.getMessage() for line in bridge.log.events("sysv_redirected")]
    text = "queue 'orders' no longer exists: the message in the journal goes to 'others'"
    assert redirected == ([text] if goal == "others" else [])


async def test_message_of_a_deleted_queue_goes_to_the_new_queue(
    bridge: LiveBridge, key: int, program: Program
) -> None:
    """Check that the bridge that waits for a deleted queue continues at once with the new one (3.4)."""
    orders, others = await bridge.queue("orders", paused=True), await bridge.queue("others")
    await bridge.open(out(key))
    await sent(program, key, 1, b"1", b"2")
    await until(lambda: bridge.log.events("sysv_waits", reason="queue_paused"))
    await bridge.stop()
    await bridge.open(out(key, "others"))
    await until(lambda: len(bridge.log.events("sysv_waits", reason="queue_paused")) == 2)
    await bridge.tools.catalogue.delete(orders)
    await carried(bridge, 2)
    assert await bridge.bodies(others) == [b"1", b"2"]


async def test_message_goes_to_its_existing_queue(bridge: LiveBridge, key: int, program: Program) -> None:
    """Check that a waiting message goes to its original queue if that exists, also after the mapping changed (3.4)."""
    orders, others = await bridge.queue("orders", paused=True), await bridge.queue("others")
    await bridge.open(out(key))
    await sent(program, key, 1, b"1", b"2")
    await until(lambda: bridge.log.events("sysv_waits", reason="queue_paused"))
    await bridge.stop()
    await bridge.queue("orders")
    await bridge.open(out(key, "others"))
    await carried(bridge, 2)
    assert await bridge.bodies(orders) == [b"1"]
    assert await bridge.bodies(others) == [b"2"]


async def test_waiting_message_stays_in_the_journal_at_the_end(
    bridge: LiveBridge, key: int, program: Program
) -> None:
    """Check that a waiting message stays in the journal when the bridge stops (4.4, 3.3)."""
    queue = await bridge.queue("orders", paused=True)
    opened = await bridge.open(out(key))
    await sent(program, key, 9, b"1", b"2")
    await until(lambda: bridge.log.events("sysv_waits", reason="queue_paused"))
    await opened.stop_taking()
    assert all(task.done() for task in opened.tasks)  # not only after the timeout
    await bridge.stop()
    assert existing(key).current_messages == 1
    await bridge.queue("orders")
    await bridge.open(out(key))
    await carried(bridge, 2)
    contents = await bridge.contents(queue)
    assert [(content.body, content.attributes["mtype"]) for content in contents] == [(b"1", 9), (b"2", 9)]


# T_MSG (3.5)


def t_msg(key: int, data: bytes, quality: Quality = Quality.HIGH_QUALITY) -> bytes:
    return encode_t_msg(TMsg(quality, 99, key, data))


def remote(key: int, *, reliable: bool = True, **more: Any) -> dict[str, Any]:
    return {"remote": {"protocol": "rqp-cast", "key": key, "reliable": reliable, **more}}


async def test_t_msg_goes_to_the_transmission_queue_of_its_key(bridge: LiveBridge, key: int) -> None:
    await bridge.queue("transmission")
    certain = await bridge.queue("certain", **remote(7))
    uncertain = await bridge.queue("uncertain", **remote(7, reliable=False))
    only = await bridge.queue("only", **remote(8))
    here = await bridge.queue("here", bindings={"rqpCast": {"key": 9}})
    await bridge.open(out(key, "transmission", **T_MSG))
    local = existing(key)
    local.send(t_msg(7, b"certain"), type=5)
    local.send(t_msg(7, b"uncertain", Quality.LOW_QUALITY))
    local.send(t_msg(8, b"there is no other", Quality.LOW_QUALITY))
    local.send(t_msg(9, b"here"))
    await carried(bridge, 4)
    found = [await bridge.contents(queue) for queue in (certain, uncertain, only, here)]
    assert [[(content.body, content.attributes) for content in contents] for contents in found] == [
        [(b"certain", {"mtype": 5, "certain": True})],
        [(b"uncertain", {"mtype": 1, "certain": False})],
        [(b"there is no other", {"mtype": 1, "certain": False})],
        [(b"here", {"mtype": 1, "certain": True})],
    ]


async def test_best_transmission_queue_is_chosen(bridge: LiveBridge, key: int) -> None:
    """Check the choice of the queue: same reliability first, then not paused, then first by name (3.5)."""
    await bridge.queue("transmission")
    names = ("d", "b", "c", "a")
    queues = {name: await bridge.queue(name, **remote(7)) for name in names}
    await bridge.queue("a", paused=True, **remote(7))
    unreliable = {name: await bridge.queue(name, **remote(8, reliable=False)) for name in ("z", "y")}
    await bridge.queue("y", paused=True, **remote(8, reliable=False))
    await bridge.queue("x", **remote(8))
    await bridge.open(out(key, "transmission", **T_MSG))
    local = existing(key)
    local.send(t_msg(7, b"none fits", Quality.LOW_QUALITY))
    local.send(t_msg(7, b"all fit"))
    local.send(t_msg(8, b"z fits", Quality.LOW_QUALITY))
    await carried(bridge, 3)
    assert [await bridge.bodies(queues[name]) for name in names] == [[], [b"none fits", b"all fit"], [], []]
    assert await bridge.bodies(unreliable["z"]) == [b"z fits"]


async def test_invalid_t_msg_goes_to_the_dead_letters(bridge: LiveBridge, key: int) -> None:
    """Check that an invalid T_MSG becomes a dead letter `injured`, unchanged, and does not block others."""
    queue = await bridge.queue("transmission")
    here = await bridge.queue("here", bindings={"rqpCast": {"key": 9}})
    await bridge.open(out(key, "transmission", **T_MSG))
    local = existing(key)
    damaged = [b"", b"\x01short", t_msg(9, b"x") + b"y", t_msg(9, b"x")[:-1], b"\x02" + t_msg(9, b"x")[1:]]
    for body in damaged:
        local.send(body, type=3)
    local.send(t_msg(9, b"whole"))
    await until(lambda: bridge.bodies(here))
    dead = await bridge.dead(queue)
    assert [(letter.reason, letter.body) for letter in dead] == [("injured", body) for body in damaged]
    assert dead[0].attributes == {"mtype": 3}
    assert [letter.error.partition(":")[0] for letter in dead] == [
        "truncated",
        "truncated",
        "trailing_octets",
        "truncated",
        "unknown_type",
    ]
    assert bridge.value("penstock_sysv_dead_total", mapping="orders", reason="injured") == 5
    assert await bridge.bodies(queue) == []


async def test_unknown_key_goes_to_the_dead_letters(bridge: LiveBridge, key: int) -> None:
    queue = await bridge.queue("transmission")
    await bridge.open(out(key, "transmission", **T_MSG))
    existing(key).send(t_msg(404, b"lost"))
    (letter,) = await until(lambda: bridge.dead(queue))
    assert (letter.reason, letter.body) == ("unknown_key", t_msg(404, b"lost"))
    assert letter.error == "no queue has the key 404"
    await bridge.queue("late", bindings={"rqpCast": {"key": 404}})  # noticed at once
    existing(key).send(t_msg(404, b"found"))
    await carried(bridge, 1)


@pytest.mark.parametrize("overflow", ["reject", "dead_letter_oldest"])
async def test_message_above_its_queues_limit_goes_to_the_dead_letters(
    bridge: LiveBridge, key: int, overflow: str
) -> None:
    """Check that a message above its queue's limit becomes a dead letter: it would block all others for ever (3.6)."""
    queue = await bridge.queue("orders", maxBytes=40, overflow=overflow)
    await bridge.open(out(key))
    existing(key).send(b"x" * 41)
    existing(key).send(b"fits")
    (letter,) = await until(lambda: bridge.dead(queue))
    assert (letter.reason, letter.body) == ("too_large_for_queue", b"x" * 41)
    await carried(bridge, 1)
    assert await bridge.bodies(queue) == [b"fits"]
    size = len(records.encode(letter.body, {"mtype": 1})) - 4
    assert letter.error == (
        f"the message has {size} octets with its attributes, queue 'orders' holds 40 (maxBytes): "
        "raise the limit, then redrive the message"
    )
    larger = await bridge.queue("orders", maxBytes=100, overflow=overflow)
    assert (await DeadLetters(bridge.tools.get_domain(larger.domain), larger).redrive([letter.id])).moved == 1


async def test_message_that_fits_waits_for_a_full_queue(bridge: LiveBridge, key: int) -> None:
    """Check that a message as large as its whole queue waits for room (3.4)."""
    size = len(records.encode(b"x" * 30, {"mtype": 1})) - 4
    queue = await bridge.queue("orders", maxBytes=size)
    await bridge.open(out(key))
    for body in (b"first", b"x" * 30):
        existing(key).send(body)
    await until(lambda: bridge.log.events("sysv_waits", reason="queue_full"))
    taken = await bridge.take_all(queue)  # may include messages that arrived meanwhile
    await carried(bridge, 2)
    assert taken + await bridge.bodies(queue) == [b"first", b"x" * 30]
    assert await bridge.dead(queue) == []


@pytest.mark.parametrize("form", ["raw", "t_msg"])
async def test_message_too_large_for_peers_goes_to_the_dead_letters(
    bridge: LiveBridge, key: int, form: str
) -> None:
    """Check that a message above the peers' limit becomes a dead letter (3.6)."""
    queue = await bridge.queue("orders", **remote(7, maxMessageBytes=20))
    await bridge.open(out(key, format=form))
    bodies = [t_msg(7, b"x" * 21), t_msg(7, b"x" * 7)]
    for body in bodies:
        existing(key).send(body)
    (letter,) = await until(lambda: bridge.dead(queue))
    assert letter.reason == "too_large_for_peers"
    assert letter.body == (bodies[0] if form == "raw" else b"x" * 21)
    await carried(bridge, 1)
