"""Marks end a node's wait for messages that do not return, beside equal payloads of other nodes (ring.md 5.5)."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from services.ring.node.boxes import marks
from tests.live import until
from tests.ring.users.conftest import NewServer
from tests.ring.users.members import Link, Member, Ring, Start
from tests.ring.users.test_requests import stores

OUTBOX = {"ring": {"outbox": 1}}
INBOX = {"ring": {"inbox": 1}}


async def got(node: Member, bodies: list[bytes]) -> bool:
    return await node.bodies("in") == bodies


async def has_to_send(node: Member) -> bool:
    """Return whether its store has messages for its successor."""
    return not await node.has_nothing_to_send()


async def sender_and_inbox(start: Start, new_server: NewServer) -> tuple[Member, Member]:
    first, inbox = await stores(start, new_server, 2)
    await first.declare("out", bindings=OUTBOX)
    await inbox.declare("in", bindings=INBOX)
    await until(lambda: first.users.bindings.outbox and inbox.users.bindings.inbox)
    return first, inbox


async def test_equal_payloads_of_other_nodes_reach_the_inbox(start: Start, new_server: NewServer) -> None:
    """Check that equal payloads of other nodes reach the inbox, behind one sender and before the other (5.5)."""
    first, inbox, second = nodes = await stores(start, new_server, 3)
    await first.declare("out", bindings=OUTBOX)
    await second.declare("out", bindings=OUTBOX)
    await inbox.declare("in", bindings=INBOX)
    await until(lambda: first.users.bindings.outbox and second.users.bindings.outbox)
    await until(lambda: inbox.users.bindings.inbox)
    ring = Ring(nodes)
    await first.put("out", *[b"ping"] * 5)
    await until(partial(got, inbox, [b"ping"] * 5))
    await until(lambda: first.count("mark") >= 1)
    await until(lambda: not first.users.marks.are_wanted)
    await second.put("out", *[b"ping"] * 8)
    await until(partial(got, inbox, [b"ping"] * 13))
    await until(lambda: not second.users.marks.are_wanted)
    await ring.settle_down()
    assert first.count("taken_off") == second.count("taken_off") == 0


async def test_without_inbox_each_sender_takes_its_messages_off(start: Start, new_server: NewServer) -> None:
    """Check that without an inbox each sender takes its messages off before the mark returns (5.5)."""
    nodes = await stores(start, new_server, 3)
    await nodes[0].declare("out", bindings=OUTBOX)
    await until(lambda: nodes[0].users.bindings.outbox)
    ring = Ring(nodes)
    for turn in range(5):
        await nodes[0].put("out", *[b"%d" % turn] * 40)
        await until(lambda turn=turn: nodes[0].count("taken_off") == 40 * turn + 40)
    await ring.settle_down()
    assert nodes[0].count("taken_off") == 200
    assert not nodes[0].users.marks.are_wanted
    number = nodes[0].count("mark")
    assert number <= 5, "no mark follows messages that returned"
    await asyncio.sleep(5 * marks.PAUSE_S)
    assert nodes[0].count("mark") == number


async def test_messages_after_a_mark_get_another_mark(start: Start, new_server: NewServer) -> None:
    """Check that messages after a mark get another mark once it has returned (5.5).

    This needs no further messages.
    """
    first, inbox = await sender_and_inbox(start, new_server)
    there, back = Link(first, inbox), Link(inbox, first, is_up=False)
    there.pump()
    await first.put("out", b"before")
    await until(partial(has_to_send, inbox))  # the mark: the message stays there
    await first.put("out", b"behind")
    await until(partial(got, inbox, [b"before", b"behind"]))
    assert first.count("mark") == 0
    back.mend()
    await until(lambda: not first.users.marks.are_wanted)
    assert first.count("mark") == 2
    await Ring([first, inbox]).settle_down()


async def test_marks_are_limited_to_ten_a_second(start: Start, new_server: NewServer) -> None:
    """Check that marks are limited to ten a second: each is a write in every store of the ring (5.5)."""
    first, inbox = await sender_and_inbox(start, new_server)
    Ring([first, inbox])
    since = asyncio.get_running_loop().time()
    for number in range(5):
        await first.put("out", b"%d" % number)
        await until(lambda number=number: first.count("mark") > number)
    assert asyncio.get_running_loop().time() - since > 5 * 0.1 - 0.01  # how early the loop's clock may be


async def test_message_later_than_its_mark_circulates_max_laps_times(
    start: Start, new_server: NewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a message later than its mark circulates max_laps times (5.5, 5.7).

    A node was away with it while the mark went around; it has no owner until a question ends it.
    """
    monkeypatch.setattr(marks, "LOST_S", 1.0)  # in case the first one goes to the node that is away, too
    first, slow, inbox = nodes = await stores(start, new_server, 3, forward_user=True, max_laps=3)
    await first.declare("out", bindings=OUTBOX)
    await inbox.declare("in", bindings=INBOX)
    await until(lambda: first.users.bindings.outbox and inbox.users.bindings.inbox)
    behind, away, back = Link(first, slow), Link(slow, inbox, is_up=False), Link(inbox, first)
    behind.pump()
    back.pump()
    await first.put("out", b"late")
    await until(partial(has_to_send, slow))
    await until(first.has_nothing_to_send)
    behind.cut()
    behind.mend(inbox)  # a ring without that node
    await until(lambda: first.count("mark") == 1)
    assert not first.users.marks.are_wanted
    behind.cut()
    behind.mend(slow)
    away.mend()
    await until(lambda: sum(node.count("laps") for node in nodes) == 1)
    assert await inbox.bodies("in") == [b"late"] * 4
    assert first.count("taken_off") == 0
    for node in nodes:
        await until(node.has_nothing_to_send)
