"""Requests of a ring with lost replies and servers that die or hang (ring.md 5.4, docs/store.md)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from redis.exceptions import ResponseError

from services.store import INTERNAL_CLIENT, CommitPart, Outcome, PipeSettings, Queue, QueueSpec, Source
from services.store.model.errors import LeaseLost, OutcomeUnknown, QueueFull, StoreUnavailable
from services.store.model.identities import RequestId
from services.store.model.requests import Nothing, Pulled, Settlement
from tests.proxy import Proxy
from tests.servers import Client, Server
from tests.store.desk import Desk, bodies, encode, numbered, until
from tests.store.lane import Lane, begin
from tests.store.pipeline.test_replays import Answers, put, repeated
from tests.store.requesting import KEEP_MS, LARGEST, Node, request_id

A, B, C, D = (request_id(number) for number in range(1, 5))


@pytest.fixture
def queue(client: Client) -> Queue:
    queue = Queue("orders", "q1", "main", "test", QueueSpec(ack_level="fsync", max_length=4))
    begin(client, queue)
    return queue


@pytest.fixture
def lane(client: Client, queue: Queue) -> Lane:
    return Lane(client, "one")


def push(lane: Lane, request: bytes, queue: Queue, body: bytes, answers: Answers) -> None:
    lane.idempotent.publish(lane.source, RequestId(request, KEEP_MS), queue, *encode(body), "t", answers)


def pull(lane: Lane, request: bytes, queue: Queue, answers: Answers) -> None:
    lane.idempotent.pull(lane.source, request, queue, LARGEST, KEEP_MS, answers)


# repeated calls after lost replies


def test_repeated_requests_get_the_same_replies(lane: Lane, queue: Queue) -> None:
    """Check that the repeated call reports the operation as done now."""
    put(lane, queue, b"0", b"1")
    answers = Answers()
    push(lane, A, queue, b"2", answers)
    pull(lane, B, queue, answers)
    pull(lane, B, queue, answers)
    lane.idempotent.settle(lane.source, C, queue, answers)
    push(lane, D, queue, b"3", answers)
    push(lane, request_id(5), queue, b"4", answers)
    repeated(lane, queue, lane.send())
    assert answers[0] is Outcome.STORED
    assert [(one.again, bodies([one.delivery])) for one in answers[1:3]] == [(False, [b"0"]), (True, [b"0"])]
    assert answers[3:5] == [Settlement.UNKNOWN, Outcome.STORED]
    assert isinstance(answers[5], QueueFull)
    lane.idempotent.settle(lane.source, B, queue, answers)
    repeated(lane, queue, lane.send())
    assert answers[-1] is Settlement.SETTLED


def test_repeated_call_does_not_give_out_a_returned_message(lane: Lane, queue: Queue, client: Client) -> None:
    other = Lane(client, "two")
    put(lane, queue, b"0", b"1")
    answers = Answers()
    pull(lane, A, queue, answers)
    lane.send()
    lane.die()
    assert other.fence() == ["one"]
    assert lane.again()[0][0] == b"DONE"
    assert other.sweep("one", [queue]) == (1, 0, 0)
    assert lane.again() == [[b"EXPIRED"]]
    pull(other, A, queue, answers)
    pull(other, B, queue, answers)
    other.send()
    assert answers[1] is Nothing.EXPIRED
    assert bodies([answers[2].delivery]) == [b"0"]


def test_late_call_records_no_request_ids(lane: Lane, queue: Queue, client: Client) -> None:
    answers = Answers()
    push(lane, A, queue, b"x", answers)
    pull(lane, B, queue, answers)
    with pytest.raises(ResponseError, match=r"^LATE"):
        lane.send(deadline_ms=1)
    assert client.call("KEYS", lane.keys.prefix + "r:*") == []
    push(lane, A, queue, b"x", answers)
    lane.send()
    assert answers == [Outcome.STORED]


def test_settling_another_processes_lease_takes_two_calls(lane: Lane, queue: Queue, client: Client) -> None:
    """Check that settling takes a second call, with the other session's key: functions change only given keys."""
    other, answers = Lane(client, "two"), Answers()
    put(lane, queue, b"0")
    pull(lane, A, queue, answers)
    lane.send()
    other.idempotent.settle(other.source, A, queue, answers)
    assert other.send() == [[b"HELD", b"one"]]
    assert len(answers) == 1
    assert lane.keys.lots("one") not in other.command
    assert other.send() == [[b"DONE"]]
    assert lane.keys.lots("one") in other.command
    assert other.again() == [[b"DONE"]]
    assert answers[1] is Settlement.SETTLED
    assert client.call("EXISTS", lane.keys.lots("one")) == 0


def test_repeated_pull_elsewhere_takes_no_lease(lane: Lane, queue: Queue, client: Client) -> None:
    """Check that a repeated pull elsewhere takes no lease, even in one call, where lease batches are cached."""
    other, answers = Lane(client, "two"), Answers()
    put(lane, queue, b"0")
    pull(lane, A, queue, answers)
    lane.send()
    pull(other, A, queue, answers)
    other.messages.release(Source(INTERNAL_CLIENT), [answers[0].delivery], failed=False, done=answers)
    other.send()
    assert isinstance(answers[1], LeaseLost), "settles come before"
    pull(other, A, queue, answers)
    after = CommitPart(queue, [answers[0].delivery], [], "t")
    other.idempotent.commit(other.source, "t1", [after], answers)
    other.send()
    assert (answers[2].again, answers[3].again, type(answers[4])) == (True, True, LeaseLost)


def test_damaged_entry_fails_only_its_request(lane: Lane, queue: Queue, client: Client) -> None:
    answers, fine = Answers(), Answers()
    put(lane, queue, b"0", b"1")
    pull(lane, A, queue, answers)
    lane.send()
    client.call("HSET", queue.keys[2], answers[0].delivery.lot, "nonsense")
    pull(lane, A, queue, answers)
    push(lane, B, queue, b"2", fine)
    lane.send()
    assert answers[1].reason == "store_fault"
    assert fine == [Outcome.STORED]


# servers

HASTY = PipeSettings(patience_s=0.5, reply_timeout_s=0.3, call_deadline_s=20.0, request_timeout_s=30.0)


class Requesters:
    """A sender of numbered requests, each repeated by several processes until one answers."""

    def __init__(self, queue: Queue, serial: int, *nodes: Node) -> None:
        """Prepare the requests. serial: the number before the first id; some thousands are used."""
        self.queue = queue
        self.nodes = nodes
        self.pushed: list[bytes] = []
        self.pulled: list[bytes] = []
        self._serial = serial

    async def _until_answered(self, verb: str, request: bytes, *args: Any) -> tuple[Any, bool]:
        """Return the first answer, and whether the request was repeated."""
        asked = 0
        while True:
            node = self.nodes[asked % len(self.nodes)]
            asked += 1
            try:
                return await getattr(node, verb)(request, self.queue, *args), asked > 1
            except StoreUnavailable:
                await asyncio.sleep(0.02)

    async def push(self) -> None:
        self._serial += 1
        body = b"%06d" % self._serial
        reply, repeated = await self._until_answered("push", request_id(2 * self._serial), body)
        assert reply is Outcome.STORED or repeated, "AGAIN of what was asked once"
        self.pushed.append(body)
        again = await self._until_answered("push", request_id(2 * self._serial), b"never")
        assert again[0] is Outcome.AGAIN

    async def pull(self) -> None:
        self._serial += 1
        request = request_id(2 * self._serial + 1)
        reply, _ = await self._until_answered("pull", request)
        if isinstance(reply, Pulled):
            settled, repeated = await self._until_answered("settle", request)
            assert settled is Settlement.SETTLED or (repeated and settled is Settlement.AGAIN)
            self.pulled += bodies([reply.delivery])

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await self.push()
            await self.pull()


async def test_requests_are_done_once_after_a_kill(own_server: Server) -> None:
    """Check this with repeats at another process of the store, as from another link of a ring."""
    async with Desk(own_server) as desk, desk.another() as other:
        nodes = (Node(desk), Node(other))
        traffic = [Requesters(await desk.queue(f"q{n}"), n * 1_000_000, *nodes) for n in range(4)]
        stop = asyncio.Event()
        tasks = [asyncio.create_task(one.run(stop)) for one in traffic]
        for _ in range(3):
            goal = sum(len(one.pulled) for one in traffic) + 60
            await until(lambda goal=goal: sum(len(one.pulled) for one in traffic) >= goal)
            own_server.kill9()
            own_server.restart()
        stop.set()
        await asyncio.gather(*tasks)
        for one in traffic:
            left = await desk.drain(one.queue)
            assert sorted(one.pulled + left) == sorted(set(one.pushed))
            assert one.pulled + left == one.pushed, "in their order, each once"
            assert not any((await desk.reconcile(one.queue)).values())


async def test_requests_with_lost_replies_are_repeated(own_server: Server) -> None:
    """Check that the pipe repeats the call under its sequence number, so that the outcome is STORED."""
    async with Proxy(own_server.port) as proxy, Desk(own_server), Desk(proxy.url) as desk:
        queue, node = await desk.queue(), Node(desk)
        await desk.put(queue, b"0")
        for number, (asked, wanted) in enumerate(
            (
                (lambda: node.push(A, queue, b"1"), Outcome.STORED),
                (lambda: node.pull(B, queue), Pulled),
                (lambda: node.settle(B, queue), Settlement.SETTLED),
            )
        ):
            proxy.lose_replies_to = b"ps1_work"
            task = asyncio.ensure_future(asked())
            await until(lambda number=number: proxy.lost > number)
            proxy.lose_replies_to = b""
            answer = await task
            assert isinstance(answer, Pulled) and not answer.again if wanted is Pulled else answer is wanted
            await until(lambda: desk.pipe.trouble is None)
        assert await desk.drain(queue) == [b"1"]


async def test_abandoned_pull_returns_its_message(own_server: Server) -> None:
    settings = PipeSettings(patience_s=0.3, reply_timeout_s=0.2, call_deadline_s=20.0, request_timeout_s=1.0)
    async with Desk(own_server, pipe=settings) as desk:
        queue, node = await desk.queue(), Node(desk)
        await desk.put(queue, *numbered(1))
        own_server.stop()
        asked = [node.push(A, queue, b"x"), node.pull(B, queue), node.settle(C, queue)]
        results = await asyncio.gather(*asked, return_exceptions=True)
        assert {type(one) for one in results} == {OutcomeUnknown}
        own_server.cont()
        await until(lambda: desk.pipe.trouble is None)

        async def back() -> bool:
            return (await desk.stats(queue))["ready"] == 2

        await until(back)
        assert await node.pull(B, queue) is Nothing.EXPIRED
        assert await node.push(A, queue, b"x") is Outcome.AGAIN
        assert await desk.drain(queue) == [*numbered(1), b"x"]


async def test_unavailable_store_refuses_requests(own_server: Server) -> None:
    async with Desk(own_server, pipe=HASTY) as desk:
        queue, node = await desk.queue(), Node(desk)
        own_server.kill9()
        await until(lambda: desk.pipe.gate.refuses() is not None)
        for asked in (node.push(A, queue, b"x"), node.pull(B, queue), node.settle(C, queue)):
            with pytest.raises(StoreUnavailable):
                await asyncio.wait_for(asked, 10)
        own_server.restart()
        await until(lambda: desk.pipe.trouble is None)
        assert await node.push(A, queue, b"x") is Outcome.STORED
