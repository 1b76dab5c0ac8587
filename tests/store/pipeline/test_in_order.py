"""Putting in in order: nothing of a source goes in behind what was refused, however it was packed (rqp_mca.md 2.1)."""

from __future__ import annotations

import asyncio
import random

import pytest

from services.store import (
    INTERNAL_CLIENT,
    PipeSettings,
    Queue,
    QueueSpec,
    Source,
    StoreError,
    StoreUnavailable,
)
from services.store.model.errors import BehindRefused, MessageTooLarge, QueueFull, QueuePaused, QueueUnknown
from tests.servers import Server
from tests.store.desk import Desk, bodies, numbered, until

Verdict = dict[int, type[StoreError]]


class Sender:
    """A source that wants its own in order."""

    def __init__(self, desk: Desk, name: str = "a") -> None:
        self.desk = desk
        self.source = Source(INTERNAL_CLIENT)
        self.holder = f"?{name}"

    def put(self, queue: Queue, *messages: bytes) -> asyncio.Future[list[tuple[int, StoreError]]]:
        how = {"source": self.source, "holder": self.holder, "in_order": True}
        return self.desk.publishing(queue, *messages, **how)


async def verdict(answer: asyncio.Future[list[tuple[int, StoreError]]]) -> Verdict:
    return {index: type(why) for index, why in await answer}


async def contents(desk: Desk, queue: Queue) -> list[bytes]:
    return bodies(await desk.domain.peek(queue, 1000))


async def test_of_one_run(desk: Desk) -> None:
    """Smaller ones behind would fit; each is too long to share an entry."""
    queue = await desk.queue(max_bytes=10_000)
    run = [b"1" * 5000, b"2" * 6000, b"3" * 4000, b"4"]
    assert await verdict(Sender(desk).put(queue, *run)) == dict.fromkeys((1, 2, 3), QueueFull)
    assert await contents(desk, queue) == run[:1]


async def test_whoever_does_not_ask_for_it_has_the_next_run_put_in(desk: Desk) -> None:
    """Of one run nothing goes in behind what finds no room, in order or not: however it was packed."""
    queue = await desk.queue(max_bytes=10_000)
    run = [b"1" * 5000, b"2" * 6000, b"3" * 4000]
    assert await verdict(desk.publishing(queue, *run)) == dict.fromkeys((1, 2), QueueFull)
    assert await desk.publish(queue, run[2]) == []
    assert await contents(desk, queue) == [run[0], run[2]]


async def test_of_runs_in_the_same_call(desk: Desk) -> None:
    """Another connection's stands between them, and is none of their business."""
    queue, other = await desk.queue(max_bytes=10), await desk.queue("other")
    one, two = Sender(desk, "one"), Sender(desk, "two")
    asked = [
        one.put(queue, b"1", b"x" * 10),
        two.put(queue, b"2"),
        one.put(queue, b"3"),
        one.put(other, b"4"),
        desk.publishing(other, b"5", source=one.source, holder=one.holder),
        two.put(queue, b"6"),
    ]
    behind = {0: BehindRefused}
    assert [await verdict(answer) for answer in asked] == [{1: QueueFull}, {}, behind, behind, {}, {}]
    assert await contents(desk, queue) == [b"1", b"2", b"6"]
    assert await contents(desk, other) == [b"5"]
    assert desk.pipe.calls == 1
    assert desk.refusals == {"queue_full": 1, "behind_refused": 2}


async def test_of_runs_in_later_calls(desk: Desk) -> None:
    """They wait already when the first is refused, as a call has no room for all; and those asked after it."""
    queue, shut = await desk.queue(), await desk.queue("shut", paused=True)
    sender = Sender(desk)
    first = sender.put(shut, b"0")
    waiting = [sender.put(queue, *numbered(1000)), sender.put(queue, b"1")]
    others = desk.publishing(queue, b"others")
    assert await verdict(first) == {0: QueuePaused}
    for answer in (*waiting, sender.put(queue, b"2")):
        with pytest.raises(BehindRefused):
            await answer
    assert await others == []
    assert await contents(desk, queue) == [b"others"]
    assert desk.pipe.waiting.pending_bytes == 0


async def test_behind_what_no_queue_took(desk: Desk) -> None:
    gone, queue = await desk.queue("gone"), await desk.queue()
    await desk.store.catalogue.delete(gone)
    sender = Sender(desk)
    asked = [sender.put(gone, b"1"), sender.put(queue, b"2")]
    assert [await verdict(answer) for answer in asked] == [{0: QueueUnknown}, {0: BehindRefused}]
    assert await contents(desk, queue) == []


async def test_behind_what_the_peers_do_not_take(desk: Desk) -> None:
    remote = {"protocol": "rqp-mca", "queueId": 7, "maxMessageBytes": 10}
    queue = await desk.queue(remote=remote)
    run = [*numbered(40), b"x" * 11, *numbered(40, 40), b"y" * 11]
    found = await verdict(Sender(desk).put(queue, *run))
    assert sorted(found) == list(range(40, len(run)))
    assert found[40] is found[81] is MessageTooLarge
    assert await contents(desk, queue) == run[:40]


async def test_behind_what_waited_too_long_for_a_store(own_server: Server) -> None:
    """The store comes back: what was asked later, and still waits, is not put in before what was refused."""
    async with Desk(own_server, pipe=PipeSettings(patience_s=1.0)) as desk:
        queue = await desk.queue()
        sender = Sender(desk)
        assert await verdict(sender.put(queue, b"0")) == {}
        own_server.kill9()
        await until(lambda: desk.pipe.trouble)
        first = sender.put(queue, b"1")
        with pytest.raises(StoreUnavailable):
            await first
        own_server.restart()
        await until(lambda: desk.pipe.trouble is None)
        with pytest.raises(BehindRefused):
            await sender.put(queue, b"2")
        assert await verdict(Sender(desk, "b").put(queue, b"3")) == {}
        assert await contents(desk, queue) == [b"0", b"3"]


async def test_a_source_leaves_no_gaps_whatever_is_refused(desk: Desk) -> None:
    """Runs of all sizes from several sources, a small queue that somebody empties meanwhile, and pauses."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    for attempt in range(8):
        queue = await desk.queue(f"q{attempt}", max_bytes=20_000)
        senders = [Sender(desk, str(number)) for number in range(3)]
        sent = {sender: [b"%s %03d " % (sender.holder.encode(), n) for n in range(60)] for sender in senders}
        answers, taken = [], list[bytes]()
        at = dict.fromkeys(senders, 0)
        while any(at[sender] < 60 for sender in senders):
            sender = rng.choice(senders)
            run = sent[sender][at[sender] : at[sender] + rng.randint(1, 12)]
            at[sender] += len(run)
            if run:
                messages = [body + b"x" * rng.choice((0, 10, 3000, 5000)) for body in run]
                answers.append(sender.put(queue, *messages))
            match rng.randrange(8):
                case 0:
                    got = await desk.take(queue, 5)
                    taken += bodies(got)
                    if got:
                        await desk.settle(got)
                case 1:
                    await desk.count(queue)  # what was asked is done
                case 2:
                    paused = QueueSpec(max_bytes=20_000, paused=rng.random() < 0.3)
                    await desk.store.catalogue.declare(queue.name, paused, "test", replace=True)
        outcomes = await asyncio.gather(*answers, return_exceptions=True)
        assert all(isinstance(told, list | BehindRefused) for told in outcomes)
        await desk.store.catalogue.declare(queue.name, QueueSpec(), "test", replace=True)
        found = [body[: len(sent[senders[0]][0])] for body in taken + await desk.drain(queue)]
        for sender in senders:
            mine = [body for body in found if body in sent[sender]]
            assert mine == sent[sender][: len(mine)]
