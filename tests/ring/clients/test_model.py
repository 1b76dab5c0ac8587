"""Random conversations compared with a model of lists, cut anywhere and ended in any way (ring.md 5.2, 5.8)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import count
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.live import set_up, until
from tests.ring.clients.client import ERROR, OK, Client, Reply, create, destroy, pull, push
from tests.ring.clients.live import LiveClients
from tests.servers import Server

Request = tuple[str, bytes, bytes, bytes]  # operation, queue, sender, body
Plan = list[tuple[list[Request], int, str]]  # requests sent ahead, the seed of how they are cut, how it ends
DONE = Reply(OK, b"")
EMPTY, EXISTS, UNSERVED = (
    Reply(ERROR, words) for words in (b"empty", b"queue exists already", b"no node serves this queue")
)
BEGINNING = [("create", b"a", b"me", b""), *[("push", b"a", b"me", b"%d" % number) for number in range(9)]]
numbers = count()  # number of examples: each has its own queues on one server

names, senders = st.sampled_from([b"a", b"b"]), st.sampled_from([b"me", b"you"])
asked = st.one_of(
    st.tuples(st.just("push"), names, senders, st.binary(max_size=3) | st.just(bytes(70_000))),
    st.tuples(st.just("pull"), names, senders, st.just(b"")),
    st.tuples(st.sampled_from(["push", "pull"]), names, senders, st.just(b"again")),
    st.tuples(st.sampled_from(["create", "create", "destroy"]), names, senders, st.just(b"")),
)
steps = st.tuples(
    st.lists(asked, min_size=1, max_size=25),
    st.integers(0, 2**32),
    st.sampled_from(["stay", "stay", "fin", "reset", "remade"]),
)


@dataclass
class Model:
    """The expected content of the queues, and the messages of the connection's last run of pulls."""

    queues: dict[bytes, list[bytes]] = field(default_factory=dict)
    run: tuple[bytes, bytes] | None = None  # queue and sender of the last pulls
    given: list[bytes] = field(default_factory=list)  # messages given to them
    last_was_given: bool = False

    def answer(self, operation: str, name: bytes, sender: bytes, body: bytes) -> Reply:
        queue = self.queues.get(name)
        if operation != "pull" or self.run != (name, sender):
            self.settle()
        if operation == "pull":
            self.run = (name, sender)
            self.last_was_given = bool(queue)
        if operation == "create":
            self.queues.setdefault(name, [])
            return DONE if queue is None else EXISTS
        if queue is None:
            return UNSERVED
        if operation == "destroy":
            del self.queues[name]
        elif operation == "push":
            queue.append(body)
        elif queue:
            self.given.append(queue.pop(0))
            return Reply(OK, self.given[-1])
        else:
            return EMPTY
        return DONE

    def settle(self) -> None:
        self.run, self.given, self.last_was_given = None, [], False

    def may_return(self) -> range:
        """Return how many messages may return if the connection breaks now.

        Where TCP cut a run of pulls, its later part has settled the earlier.
        """
        return range(int(self.last_was_given), len(self.given) + 1)

    def returns(self, number: int) -> None:
        if number:
            assert self.run is not None
            self.queues[self.run[0]][:0] = self.given[-number:]
        self.settle()


ENCODE = {
    "create": lambda name, sender, _: create(name, sender),
    "destroy": lambda name, sender, _: destroy(name, sender),
    "pull": lambda name, sender, _: pull(name, sender=sender),
    "push": lambda name, sender, body: push(name, body, sender=sender),
}


class Conversations:
    """Conversations that run one after the other on one edge, each compared with the model."""

    def __init__(self, edge: LiveClients, model: Model) -> None:
        self.edge = edge
        self.model = model
        self.prefix = b"%d-" % next(numbers)
        self.client: Client

    async def follow(self, plan: Plan) -> None:
        self.client = await self.edge.client()
        await self.talk(BEGINNING, Random(0))  # so that even a short plan makes progress
        for requests, seed, end in plan:
            await self.talk(requests, Random(seed))
            await self.end(end)
        for name in sorted(self.model.queues):
            self.model.settle()
            assert await self.client.drain(self.prefix + name) == self.model.queues[name]

    async def talk(self, requests: list[Request], chance: Random) -> None:
        """Send the requests ahead, cut at random places, and compare the replies."""
        wire = b"".join(
            ENCODE[operation](self.prefix + name, sender, body) for operation, name, sender, body in requests
        )
        cuts = sorted(chance.randrange(len(wire)) for _ in range(chance.randrange(6))) if wire else []
        for start, end in zip([0, *cuts], [*cuts, len(wire)], strict=True):
            await self.client.send(wire[start:end])
            for _ in range(chance.randrange(20)):
                await asyncio.sleep(0)
        for operation, name, sender, body in requests:
            expected = self.model.answer(operation, name, sender, body)
            assert await self.client.reply(self.prefix + name, sender) == expected, (operation, name, body)

    async def end(self, how: str) -> None:
        if how == "remade":
            await self.remake()
        if how == "fin":
            self.client.fin()
            assert await self.client.ended() == "fin"
            self.model.settle()
        if how == "reset":
            self.client.reset()
            await until(lambda: not self.edge.connections())
            await self.find_out_what_returned()
        if how in ("fin", "reset"):
            self.client.close()
            self.client = await self.edge.client()

    async def remake(self) -> None:
        """Delete and recreate a queue by another process; this edge is notified last."""
        for name in self.model.queues:
            known = (self.prefix + name).decode()
            with self.edge.changes_not_published():
                await self.edge.tools.catalogue.delete(await self.edge.tools.catalogue.find(known))
                await self.edge.declare(known, owner="edge:ring")
            self.model.queues[name] = []
            if self.model.run is not None and self.model.run[0] == name:
                self.model.settle()

    async def find_out_what_returned(self) -> None:
        model = self.model
        may = model.may_return()
        name = model.run[0] if model.run is not None else None
        if name is None or name not in model.queues:
            model.settle()
            return
        known = (self.prefix + name).decode()
        await until(lambda: self.nothing_leased(known))
        returned = (await self.edge.stats(known))["ready"] - len(model.queues[name])
        assert returned in may
        model.returns(returned)

    async def nothing_leased(self, name: str) -> bool:
        return bool((await self.edge.stats(name))["in_flight"] == 0)


@pytest.fixture
def fresh(running: Server) -> Server:
    """Return the store with only what `penstock up` creates, shared by all examples."""
    running.clear()
    asyncio.run(set_up(running))
    return running


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plan=st.lists(steps, min_size=3, max_size=8))
def test_any_conversation(fresh: Server, plan: Plan) -> None:
    asyncio.run(converse(fresh, plan))


async def converse(server: Server, plan: Plan) -> None:
    edge = LiveClients(server.url, clients={"eof_grace_s": 0.0})
    try:
        await edge.open()
        await Conversations(edge, Model()).follow(plan)
    finally:
        await edge.close()
    edge.check_no_fault_of_ours()
