"""Replacement of lost marks, unless the mark still waits for a link (ring.md 5.5)."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from services.ring.node.boxes import marks
from services.ring.node.counts import UserOutcome
from services.ring.node.outgoing import writer as writer
from tests.live import until
from tests.ring.users.conftest import NewServer
from tests.ring.users.members import Link, Member, Start, lose_queue
from tests.ring.users.test_marks import INBOX, OUTBOX, got, has_to_send
from tests.ring.users.test_requests import stores
from tests.servers import Server


async def test_equal_payloads_reach_the_inbox_after_a_lost_mark(
    start: Start, new_server: NewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that equal payloads reach the inbox after a lost mark (5.5).

    A node that stored it never returns, and the sender puts no more messages on the ring.
    """
    monkeypatch.setattr(marks, "LOST_S", 1.0)
    first, inbox, dies, second = await stores(start, new_server, 4)
    await first.declare("out", bindings=OUTBOX)
    await second.declare("out", bindings=OUTBOX)
    await inbox.declare("in", bindings=INBOX)
    await until(lambda: first.users.bindings.outbox and second.users.bindings.outbox)
    await until(lambda: inbox.users.bindings.inbox)
    links = Link(first, inbox), Link(inbox, dies)
    for link in links:
        link.pump()
    await first.put("out", b"ping")
    await until(partial(got, inbox, [b"ping"]))
    await until(partial(has_to_send, dies))
    links[1].cut()
    links[1].mend(second)  # a ring without that node
    Link(second, first).pump()
    await until(lambda: not first.users.marks.are_wanted)
    await second.put("out", b"ping")
    await until(partial(got, inbox, [b"ping"] * 2))
    assert first.count(UserOutcome.TAKEN_OFF) == 0


async def test_mark_refused_by_the_store_is_sent_again(
    start: Start, new_server: NewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a mark refused by the store is sent again (5.5).

    Nothing waits there for the successor, and no client uses the node meanwhile.
    """
    monkeypatch.setattr(marks, "LOST_S", 0.5)
    monkeypatch.setattr(writer, "PATIENCE_S", 0.5)
    own, goal = await new_server(), await new_server()
    there, back = await a_full_window(start, own, goal)
    first = there.source
    with own.configured(maxmemory="1mb"):
        there.mend()
        await until(lambda: first.users.writer.trouble)
        first.users.user_sink.received(b"behind the mark", lambda: None)
        await until(lambda: first.count(UserOutcome.UNSAFE) == 1)
    monkeypatch.undo()
    await goes_on(there, back, goal)
    await until(lambda: not first.users.marks.are_wanted)


async def test_one_mark_waits_without_a_link(
    start: Start, new_server: NewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that only one mark waits without a link, also when it was returned to the store unanswered (5.5)."""
    monkeypatch.setattr(marks, "LOST_S", 0.02)
    goal = await new_server()
    there, back = await a_full_window(start, await new_server(), goal)
    first = there.source
    there.mend()
    await until(partial(all_wait, first))
    await asyncio.sleep(5 * marks.LOST_S)
    there.window = 2  # the other message is put on while the mark waits
    there.pump()
    await asyncio.sleep(2 * marks.PAUSE_S)
    assert await all_wait(first)
    there.window = 3
    for _ in range(3):
        there.pump()
        await until(lambda: len(there.unanswered) == 3)
        await asyncio.sleep(5 * marks.LOST_S)
        there.cut()
        await asyncio.sleep(5 * marks.LOST_S)
        there.is_up = True
    assert await all_wait(first)
    monkeypatch.undo()
    await goes_on(there, back, goal)
    await until(lambda: not first.users.marks.are_wanted)
    assert first.count("mark") == 2  # messages put on while the first mark waited have their own mark


async def test_mark_taken_by_another_client_is_replaced(
    start: Start, new_server: NewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a mark taken by another client is replaced (5.5).

    An operator deleted the queue, or another process of the node's name sent the mark.
    """
    monkeypatch.setattr(marks, "LOST_S", 0.5)
    goal = await new_server()
    there, back = await a_full_window(start, await new_server(), goal)
    first = there.source
    there.mend()
    await until(partial(all_wait, first))
    await lose_queue(first.store, first.users.queue_name)
    await until(lambda: first.users.ownership.queue is None)
    await until(lambda: first.users.ownership.queue is not None)
    assert first.users.marks.are_wanted
    await goes_on(there, back, goal)
    await until(lambda: not first.users.marks.are_wanted)


async def a_full_window(start: Start, own: Server, goal: Server) -> tuple[Link, Link]:
    """Fill the window: of two messages, one leaves when the first link is repaired.

    It is not answered, as the inbox's store is stopped.
    """
    first, inbox = await start(own, b"first"), await start(goal, b"inbox")
    await first.declare("out", bindings=OUTBOX)
    await inbox.declare("in", bindings=INBOX)
    await until(lambda: first.users.bindings.outbox and inbox.users.bindings.inbox)
    there, back = Link(first, inbox, window=1, is_up=False), Link(inbox, first, is_up=False)
    await first.put("out", b"x", b"y")
    await until(lambda: len(first.users.outgoing) == 2)
    goal.stop()
    return there, back


async def all_wait(first: Member) -> bool:
    """Return whether both messages and the mark are in its store."""
    stats = await first.stats(first.users.queue_name)
    return bool(stats["ready"] + stats["in_flight"] == 3)


async def goes_on(there: Link, back: Link, goal: Server) -> None:
    """Continue the stopped store: messages that were not safe are sent again (4.5)."""
    goal.cont()
    there.cut()
    node = there.goal
    await until(lambda: node.users.readiness.unready() is None and len(node.users.user_sink) == 0)
    there.mend()
    back.mend()
