"""Out of a local queue, into Penstock (docs/sysv.md 3)."""

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


async def test_what_an_old_program_sends_is_a_message(bridge: LiveBridge, key: int, program: Program) -> None:
    """3.1: in order, with its mtype, its origin, and as it was sent, also when it is empty."""
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


async def test_what_was_sent_before_the_start_and_more_than_fits(
    bridge: LiveBridge, key: int, program: Program
) -> None:
    """4.2: an existing queue is used as it is; the program waits while it is full, as ever."""
    make(key)
    before = [b"x" * 4000] * 4
    await sent(program, key, 1, *before)
    sending = asyncio.create_task(sent(program, key, 1, *([b"y" * 4000] * 30)))
    queue = await bridge.queue("orders")
    await bridge.open(out(key))
    await sending
    await carried(bridge, 34)
    assert await bridge.bodies(queue) == before + [b"y" * 4000] * 30


async def test_a_local_queue_that_is_removed_is_opened_again(
    bridge: LiveBridge, key: int, program: Program
) -> None:
    """2.6 holds for both ways."""
    queue = await bridge.queue("orders")
    await bridge.open(out(key))
    existing(key).remove()
    await until(lambda: find(key))
    await sent(program, key, 1, b"after")
    await until(lambda: bridge.bodies(queue))
    assert await bridge.bodies(queue) == [b"after"]
    assert bridge.log.events("sysv_reopened")


# While publishing fails, nothing is received (3.4)


async def test_a_full_queue_leaves_the_messages_with_the_kernel(
    bridge: LiveBridge, key: int, program: Program
) -> None:
    """One was taken when that became known; it is in the journal, and the others stay where they are."""
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
    assert len(bridge.log.events("sysv_waits")) == 1  # told once, however often it was tried
    assert bridge.log.events("sysv_goes_on", reason="queue_full")


@pytest.mark.parametrize(("change", "reason"), [({"paused": True}, "queue_paused"), (None, "queue_unknown")])
async def test_a_queue_that_is_paused_or_deleted(
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
async def test_a_message_for_a_queue_that_was_deleted(
    bridge: LiveBridge, key: int, program: Program, goal: str
) -> None:
    """Made again, or another one in the mapping: nothing is lost, and the log says what to do and what was done."""
    queue = await bridge.queue("orders", paused=True)
    await bridge.open(out(key))
    await sent(program, key, 1, b"1", b"2", b"3")
    await until(lambda: bridge.log.events("sysv_waits", reason="queue_paused"))
    await bridge.tools.catalogue.delete(queue)
    (told,) = await until(lambda: bridge.log.events("sysv_waits", reason="queue_unknown"))
    journal = bridge.journal / f"{format_key(key)}.journal"
    assert told.getMessage() == (
        f"there is no queue 'orders', and a message for it is in the journal {journal}: create it again, or start anew "
        f"with key {format_key(key)} mapped to another queue, then the message goes there"
    )
    await bridge.stop()
    queue = await bridge.queue(goal)
    await bridge.open(out(key, goal))
    await carried(bridge, 3)
    assert await bridge.bodies(queue) == [b"1", b"2", b"3"]
    redirected = [line.getMessage() for line in bridge.log.events("sysv_redirected")]
    text = "there is no queue 'orders' any more: the message in the journal that was for it goes to 'others'"
    assert redirected == ([text] if goal == "others" else [])


async def test_a_queue_that_is_deleted_when_the_mapping_has_another_one(
    bridge: LiveBridge, key: int, program: Program
) -> None:
    """3.4: the bridge that waits for it goes on at once."""
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


async def test_a_message_for_a_queue_that_is_there_goes_there(
    bridge: LiveBridge, key: int, program: Program
) -> None:
    """3.4: whatever the mapping says now."""
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


async def test_a_bridge_that_ends_while_it_waits_keeps_the_message_in_its_journal(
    bridge: LiveBridge, key: int, program: Program
) -> None:
    """4.4, 3.3"""
    queue = await bridge.queue("orders", paused=True)
    opened = await bridge.open(out(key))
    await sent(program, key, 9, b"1", b"2")
    await until(lambda: bridge.log.events("sysv_waits", reason="queue_paused"))
    await opened.stop_taking()
    assert all(task.done() for task in opened.tasks)  # not only when its time is over
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


async def test_a_t_msg_goes_to_the_transmission_queue_of_its_key(bridge: LiveBridge, key: int) -> None:
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


async def test_which_of_several_transmission_queues_gets_it(bridge: LiveBridge, key: int) -> None:
    """3.5: one as reliable as it is wanted, then one that is not paused, then the first by name."""
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


async def test_what_is_no_t_msg_is_a_dead_letter(bridge: LiveBridge, key: int) -> None:
    """As `injured`, and as it came; nothing behind it waits."""
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


async def test_a_key_that_no_queue_has(bridge: LiveBridge, key: int) -> None:
    queue = await bridge.queue("transmission")
    await bridge.open(out(key, "transmission", **T_MSG))
    existing(key).send(t_msg(404, b"lost"))
    (letter,) = await until(lambda: bridge.dead(queue))
    assert (letter.reason, letter.body) == ("unknown_key", t_msg(404, b"lost"))
    assert letter.error == "no queue has the key 404"
    await bridge.queue("late", bindings={"rqpCast": {"key": 404}})  # seen at once
    existing(key).send(t_msg(404, b"found"))
    await carried(bridge, 1)


@pytest.mark.parametrize("overflow", ["reject", "dead_letter_oldest"])
async def test_what_is_larger_than_its_queue(bridge: LiveBridge, key: int, overflow: str) -> None:
    """3.6: it would wait for ever, and all behind it."""
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
        f"{size} octets with its attributes, and the whole queue 'orders' holds 40 (maxBytes): "
        "make it larger, then redrive the message"
    )
    larger = await bridge.queue("orders", maxBytes=100, overflow=overflow)
    assert (await DeadLetters(bridge.tools.get_domain(larger.domain), larger).redrive([letter.id])).moved == 1


async def test_what_fits_into_its_queue_waits_for_room(bridge: LiveBridge, key: int) -> None:
    """3.4: as large as the whole queue may be."""
    size = len(records.encode(b"x" * 30, {"mtype": 1})) - 4
    queue = await bridge.queue("orders", maxBytes=size)
    await bridge.open(out(key))
    for body in (b"first", b"x" * 30):
        existing(key).send(body)
    await until(lambda: bridge.log.events("sysv_waits", reason="queue_full"))
    taken = await bridge.take_all(queue)  # perhaps with what came meanwhile
    await carried(bridge, 2)
    assert taken + await bridge.bodies(queue) == [b"first", b"x" * 30]
    assert await bridge.dead(queue) == []


@pytest.mark.parametrize("form", ["raw", "t_msg"])
async def test_what_is_too_large_for_the_peers(bridge: LiveBridge, key: int, form: str) -> None:
    """3.6"""
    queue = await bridge.queue("orders", **remote(7, maxMessageBytes=20))
    await bridge.open(out(key, format=form))
    bodies = [t_msg(7, b"x" * 21), t_msg(7, b"x" * 7)]
    for body in bodies:
        existing(key).send(body)
    (letter,) = await until(lambda: bridge.dead(queue))
    assert letter.reason == "too_large_for_peers"
    assert letter.body == (bodies[0] if form == "raw" else b"x" * 21)
    await carried(bridge, 1)
