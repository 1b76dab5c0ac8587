"""Ordered publishes: nothing of a source is stored after a refusal, however calls are packed (rqp_mca.md 2.1)."""

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
    """A source of ordered publishes."""

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


async def test_refused_record_stops_the_rest_of_its_run(desk: Desk) -> None:
    """Check that records after a refused one are refused, although smaller ones would fit."""
    queue = await desk.queue(max_bytes=10_000)
    run = [b"1" * 5000, b"2" * 6000, b"3" * 4000, b"4"]
    assert await verdict(Sender(desk).put(queue, *run)) == dict.fromkeys((1, 2, 3), QueueFull)
    assert await contents(desk, queue) == run[:1]


async def test_unordered_runs_are_independent(desk: Desk) -> None:
    """Check that a refusal affects only its own run if runs are unordered."""
    queue = await desk.queue(max_bytes=10_000)
    run = [b"1" * 5000, b"2" * 6000, b"3" * 4000]
    assert await verdict(desk.publishing(queue, *run)) == dict.fromkeys((1, 2), QueueFull)
    assert await desk.publish(queue, run[2]) == []
    assert await contents(desk, queue) == [run[0], run[2]]


async def test_refused_run_stops_later_runs_of_the_same_call(desk: Desk) -> None:
    """Check that later runs of the source are refused, but not another connection's run between them."""
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


async def test_refused_run_stops_runs_of_later_calls(desk: Desk) -> None:
    """Check that runs which wait when the first is refused, and later ones, are refused."""
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


async def test_refusal_of_the_queue_stops_later_runs(desk: Desk) -> None:
    gone, queue = await desk.queue("gone"), await desk.queue()
    await desk.store.catalogue.delete(gone)
    sender = Sender(desk)
    asked = [sender.put(gone, b"1"), sender.put(queue, b"2")]
    assert [await verdict(answer) for answer in asked] == [{0: QueueUnknown}, {0: BehindRefused}]
    assert await contents(desk, queue) == []


async def test_refusal_of_the_peers_stops_later_runs(desk: Desk) -> None:
    remote = {"protocol": "rqp-mca", "queueId": 7, "maxMessageBytes": 10}
    queue = await desk.queue(remote=remote)
    run = [*numbered(40), b"x" * 11, *numbered(40, 40), b"y" * 11]
    found = await verdict(Sender(desk).put(queue, *run))
    assert sorted(found) == list(range(40, len(run)))
    assert found[40] is found[81] is MessageTooLarge
    assert await contents(desk, queue) == run[:40]


async def test_unavailable_store_stops_later_runs(own_server: Server) -> None:
    """Check that later runs which still wait are not stored when the store returns."""
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


async def test_ordered_source_leaves_no_gaps(desk: Desk) -> None:
    """Check this with random runs of several sources, a small queue that is emptied meanwhile, and pauses."""
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
        assert all(isinstance(reported, list | BehindRefused) for reported in outcomes)
        await desk.store.catalogue.declare(queue.name, QueueSpec(), "test", replace=True)
        found = [body[: len(sent[senders[0]][0])] for body in taken + await desk.drain(queue)]
        for sender in senders:
            mine = [body for body in found if body in sent[sender]]
            assert mine == sent[sender][: len(mine)]
