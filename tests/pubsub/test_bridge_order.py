"""SENDs under way to the log while queues subscribe and unsubscribe (pubsub.md 3.1, 3.4, 5.1).

The log is a double that answers when the test releases it: the tests vary the order of the store's answers.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from services.pubsub.bridge import MAX_UNDER_WAY, MAX_WAITING, SLICE, Bridge
from services.store import INTERNAL_CLIENT, Queue, QueueSpec, Source, StoreError, StoreUnavailable
from services.store.log.log import Log, Subscription, Subscriptions
from services.store.model.errors import BindingsChanged, OutcomeUnknown, QueueFull
from services.store.model.operations import Refusals, Send
from tests.live import until

Outcome = Refusals | StoreError


class SlowLog:
    """A log for a bridge: `asked` are the sends, in order, `reads` the reads of the table."""

    def __init__(self) -> None:
        self.asked: list[Send] = []
        self.reads: list[asyncio.Future[Subscriptions]] = []
        self.domain = SimpleNamespace(
            pipe=SimpleNamespace(waiting=SimpleNamespace(congested=False, max_bytes=64 << 20))
        )

    def send(self, source: Source, send: Send) -> None:
        self.asked.append(send)

    async def subscriptions(self) -> Subscriptions:
        self.reads.append(asyncio.get_running_loop().create_future())
        return await self.reads[-1]

    async def answer_read(self, version: str, *patterns: str) -> None:
        """Answer a read of the table."""
        await until(lambda: self.reads)
        queue = Queue("q", "1", "main", "", QueueSpec(domain="main", ack_level="fsync"))
        self.reads.pop().set_result(Subscriptions(version, (Subscription(queue, patterns),) * bool(patterns)))

    def take(self) -> list[Send]:
        """Return the sends since the last call."""
        taken, self.asked = self.asked, []
        return taken


def texts(sends: list[Send]) -> list[bytes]:
    return [send.block for send in sends]


async def opened(log: SlowLog, *patterns: str) -> Bridge:
    bridge = Bridge(cast(Log, log))
    opening = asyncio.create_task(bridge.open())
    await log.answer_read("1", *patterns)
    await opening
    return bridge


def send(bridge: Bridge, block: bytes) -> list[Outcome]:
    """Send lines; return the list of their answers."""
    answers: list[Outcome] = []
    bridge.send(Source(INTERNAL_CLIENT), block, block.count(b"\n"), "test", answers.append)
    return answers


async def test_refused_sends_are_repeated_before_later_ones() -> None:
    """Check that refused sends are repeated before later ones: sent first, stored first (3.4)."""
    log = SlowLog()
    bridge = await opened(log)
    answers = [send(bridge, b"SEND t %d\n" % number) for number in range(2)]
    old = log.take()
    old[0].done(BindingsChanged())
    answers += [send(bridge, b"SEND t %d\n" % number) for number in range(2, 4)]
    old[1].done(BindingsChanged())
    assert log.take() == []
    await log.answer_read("2")
    await until(lambda: log.asked)
    new = log.take()
    assert texts(new) == [b"SEND t %d\n" % number for number in range(4)]
    assert [each.bindings for each in old + new] == ["1"] * 2 + ["2"] * 4
    assert answers == [[]] * 4
    for each in new:
        each.done(None)
    assert answers == [[[]]] * 4
    await bridge.close()


async def test_repeats_wait_until_all_sends_are_answered() -> None:
    """Check that repeats wait until all sends are answered (3.4).

    Sends still under way may be refused too, and precede those held back.
    """
    log = SlowLog()
    bridge = await opened(log)
    for number in range(3):
        send(bridge, b"SEND t %d\n" % number)
    old = log.take()
    old[0].done(BindingsChanged())
    send(bridge, b"SEND t 3\n")
    await log.answer_read("2")
    await until(lambda: bridge.bindings.version == "2")
    assert log.asked == []
    send(bridge, b"SEND t 4\n")
    old[1].done(BindingsChanged())
    assert log.asked == []
    old[2].done(BindingsChanged())
    await until(lambda: log.asked)
    assert texts(log.take()) == [b"SEND t %d\n" % number for number in range(5)]
    send(bridge, b"SEND t 5\n")
    assert texts(log.take()) == [b"SEND t 5\n"]
    await bridge.close()


async def test_run_keeps_its_order_when_bindings_change() -> None:
    """Check that a run keeps its order when bindings change (3.4, 5.1).

    It is split again by the new table, in which one queue was added and another removed.
    """
    log = SlowLog()
    bridge = await opened(log, "a*")
    answers = send(bridge, b"SEND a 0\nSEND b 1\nSEND a 2\n")
    old = log.take()
    assert texts(old) == [b"SEND a 0\n", b"SEND b 1\n", b"SEND a 2\n"]
    for each in old:
        each.done(BindingsChanged())
    await log.answer_read("2", "b")
    await until(lambda: log.asked)
    new = log.take()
    assert texts(new) == [b"SEND a 0\n", b"SEND b 1\n", b"SEND a 2\n"]
    assert [len(each.copies) for each in old + new] == [1, 0, 1, 0, 1, 0]
    error = QueueFull()
    for each, outcome in zip(new, (None, error, None), strict=True):
        assert answers == []
        each.done(outcome)
    assert answers == [[(1, error)]]
    await bridge.close()


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
async def test_run_with_a_partly_unknown_outcome_is_answered_once(order: tuple[int, int, int]) -> None:
    """Check that a run with a partly unknown outcome is answered once, as unknown (3.1).

    The outcome and time of its other parts do not matter.
    """
    log = SlowLog()
    bridge = await opened(log, "a*")
    answers = send(bridge, b"SEND b 0\nSEND a 1\nSEND b 2\n")
    parts, unknown = log.take(), OutcomeUnknown()
    outcomes = (unknown, unknown, QueueFull())
    for index in order:
        parts[index].done(outcomes[index])
    assert answers == [unknown]
    await bridge.close()
    assert answers == [unknown]


async def test_flood_of_sends_with_copies_does_not_delay_other_clients() -> None:
    """Check that a flood of sends with copies does not delay other clients (5.1).

    Few lines at a time are split, each client's in turn; sends without copies pass at once.
    """
    log = SlowLog()
    bridge = await opened(log, "a*")
    flood = [send(bridge, b"SEND a %d\n" % number * 1000) for number in range(20)]
    await until(lambda: len(log.asked) >= MAX_UNDER_WAY)
    assert len(log.asked) < MAX_UNDER_WAY + SLICE
    plain, one = send(bridge, b"SEND b 1\n"), send(bridge, b"SEND a one\n")
    assert log.asked[-1].block == b"SEND b 1\n"
    asked: list[bytes] = []
    while len(asked) < 20_002:
        await until(lambda: log.asked)
        for each in log.take():
            asked.append(each.block)
            each.done(None)
    assert plain == one == [[]]
    assert flood == [[[]]] * 20
    assert asked.index(b"SEND a one\n") < MAX_UNDER_WAY + 40 * SLICE
    assert [asked.count(b"SEND a %d\n" % number) for number in range(20)] == [1000] * 20
    await bridge.close()


async def test_clients_are_congested_while_too_many_sends_wait() -> None:
    """Check that clients are congested while too many sends wait: they are not read until there is room (5.1)."""
    log = SlowLog()
    bridge = await opened(log, "a*")
    run = b"SEND a x\n" * 1000
    source, answers = Source(INTERNAL_CLIENT), list[Outcome]()
    sent = 0
    while not bridge.is_congested(source):
        bridge.send(source, run, 1000, "test", answers.append)
        sent += 1000
    assert MAX_WAITING < sent < MAX_WAITING + 2 * MAX_UNDER_WAY
    assert not bridge.is_congested(Source(INTERNAL_CLIENT))  # clients without waiting SENDs are not affected
    cleared = asyncio.Event()
    bridge.when_clear(cleared.set)
    while not cleared.is_set():
        await until(lambda: log.asked or cleared.is_set())
        for each in log.take():
            each.done(None)
    assert not bridge.is_congested(source)
    await bridge.close()


async def test_all_lines_are_answered_when_the_store_refuses_synchronously() -> None:
    """Check that all lines are answered when the store refuses synchronously, however many wait (3.1)."""
    log = SlowLog()
    bridge = await opened(log, "a*")
    answers = [send(bridge, b"SEND a %d\n" % number * 1000) for number in range(20)]
    await until(lambda: len(log.asked) >= MAX_UNDER_WAY)
    away = StoreUnavailable("away")
    log.send = lambda source, send: send.done(away)  # type: ignore[method-assign]
    for each in log.take():
        each.done(away)
    await until(lambda: all(answers))
    assert [[len(cast(Refusals, refusals)) for refusals in each] for each in answers] == [[1000]] * 20
    assert not bridge.waiting
    await bridge.close()


async def test_failing_callback_does_not_stop_other_sessions() -> None:
    """Check that a failing callback does not stop other sessions."""
    log = SlowLog()
    bridge = await opened(log, "a*")

    def fails(_: Outcome) -> None:
        raise ValueError("internal error")

    bridge.send(Source(INTERNAL_CLIENT), b"SEND a x\n" * MAX_UNDER_WAY, MAX_UNDER_WAY, "test", lambda _: None)
    await until(lambda: len(log.asked) >= MAX_UNDER_WAY)
    bridge.send(Source(INTERNAL_CLIENT), b"SEND a 0\n", 1, "test", fails)
    answers = send(bridge, b"SEND a 1\n")
    refuse = StoreUnavailable("away")
    log.send = lambda source, send: send.done(refuse)  # type: ignore[method-assign]
    faults = 0
    for each in log.take():
        try:
            each.done(None)
        except ValueError:
            faults += 1
    await until(lambda: answers)
    assert answers == [[(0, refuse)]]
    assert faults == 1
    await bridge.close()
