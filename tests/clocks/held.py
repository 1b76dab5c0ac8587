"""Leases of an edge of each protocol, while clocks change or after the edge was killed."""

from __future__ import annotations

import asyncio
from typing import Any

from protos.rqp_cast import AcceptSenderMsg, Result
from services.store.model.errors import QueueUnknown
from tests.live import until
from tests.pairs.test_every_pair import leading, numbered
from tests.pairs.world import World, arrived, put_by_tmq
from tests.pubsub.client import Client as TextClient
from tests.pubsub.stores import linked
from tests.ring.chain.live import LiveRing
from tests.ring.clients.client import Client as RingClient
from tests.ring.links.live import GROUP
from tests.rqp.cast.hands import HandSender
from tests.rqp.mca.client import Client as McaClient
from tests.servers import free_port
from tests.tmq.client import Client as TmqClient

BODY = b"held"
ASKING = "127.0.0.5"  # where the sending agent by hand is
ASK_S = 0.3
FRESH_MS = 60_000
SOON = {"visibilityTimeout": "1ms"}  # the session's time decides


class Held:
    """One lease. `begin` takes it."""

    def __init__(self, place: World, name: str, number: int) -> None:
        self.place, self.name, self.number = place, name, number

    async def begin(self) -> None:
        raise NotImplementedError

    async def finish(self) -> list[str]:
        """Use the lease of a live edge; return the messages that the queue then has."""
        raise NotImplementedError

    async def again(self) -> list[str]:
        """Return what another edge of `place` gets after the holder was killed."""
        return await self.drained(self.name)

    async def drained(self, name: str) -> list[str]:
        return [body.decode() for body in await self.place.drain(name, 1)]

    async def left(self) -> list[str]:
        client = await self.place.tmq.client()
        mqid = await client.open(self.name.encode())
        assert mqid is not None
        return [body.decode() for body in await client.drain(mqid)]


class TmqMessage(Held):
    """A message that is taken and settled by the next request."""

    listener = "document"
    in_transaction = False
    client: TmqClient
    mqid: bytes

    async def begin(self) -> None:
        await self.place.declare(self.name, **SOON)
        self.client = client = await self.place.tmq.client(self.listener)
        self.mqid = await client.queue(self.name.encode())
        await client.put(self.mqid, BODY)
        assert not self.in_transaction or await client.ts()
        assert await client.dnq(self.mqid) == BODY

    async def finish(self) -> list[str]:
        if self.in_transaction:
            assert await self.client.te()
        else:
            assert await self.client.dnq(self.mqid) is None
        return await self.left()


class ReferenceMessage(TmqMessage):
    listener = "reference"


class TmqTransaction(TmqMessage):
    in_transaction = True


class ReferenceTransaction(TmqTransaction):
    listener = "reference"


class RingMessage(Held):
    client: RingClient

    async def begin(self) -> None:
        await self.place.declare(self.name, **SOON)
        self.client = await self.place.ring.client()
        await self.client.push(self.name.encode(), BODY)
        assert await self.client.pull(self.name.encode()) == BODY

    async def finish(self) -> list[str]:
        assert await self.client.pull(self.name.encode()) is None
        return await self.left()


class RingNode(Held):
    """A ring node's row on the board, and the queue of messages for its successor."""

    async def begin(self) -> None:
        await self._owns(await self._node(), 1)

    async def again(self) -> list[str]:
        node = await self._node()
        try:
            await self._owns(node, 2)
            ((row,), now_ms) = await node.tools.ring_nodes.all(), await node.tools.now_ms()
            assert abs(now_ms - row.written_ms) < FRESH_MS
            await node.tools.ring_nodes.remove(row.group, row.name)
        finally:
            await node.close()
        return [BODY.decode()]

    async def _node(self) -> LiveRing:
        node = LiveRing(self.place.server.url, free_port(), f"127.0.0.1:{self.number}")
        await node.open()
        return node

    async def _owns(self, node: LiveRing, fence: int) -> None:
        """Wait until the queue of its name has had so many owners."""

        async def is_owned() -> bool:
            try:
                queue = await node.tools.catalogue.find(f"ring/{GROUP}/127.0.0.1:{self.number}")
            except QueueUnknown:
                return False
            found = await node.tools.get_domain(queue.domain).link.call("HGET", queue.keys[1], "own_fence")
            return int(found or 0) >= fence

        await until(is_owned)


class TextLink(Held):
    """The lease of the link to a neighbour, whose holder receives what is sent there."""

    async def begin(self) -> None:
        await linked(self.place.text)
        assert await self.again() == [BODY.decode()]

    async def again(self) -> list[str]:
        neighbour, tag = self.place.neighbour, self.name.encode()
        assert neighbour is not None
        reader = await self.place.text.client()
        await reader.subscribe(b"1", tag)
        writer = await TextClient.connect((neighbour.host, neighbour.port))
        await writer.publish(tag, BODY)
        writer.close()
        return [(await reader.line()).removeprefix(b"MESSAGE 1 ").strip().decode()]


class McaAssignment(Held):
    client: McaClient

    async def begin(self) -> None:
        await self.place.declare(self.name, bindings=numbered("mca", self.number))
        self.client = await self.place.far.client()
        await self.client.request(self.number)

    async def finish(self) -> list[str]:
        await self.client.put(self.number, BODY)
        return await self.drained(self.name)

    async def again(self) -> list[str]:
        end = self.number + 1  # of a queue that is always available
        await self.place.declare(f"{self.name}-end", bindings=numbered("mca", end))
        self.client = await self.place.far.client()
        await until(lambda: self.client.is_assigned(self.number, end))
        return await self.finish()


class CastReservation(Held):
    offer: AcceptSenderMsg

    async def begin(self) -> None:
        await self.place.declare(self.name, bindings=numbered("cast", self.number))
        self.hands = HandSender(self.place.net, ASKING)
        self.offer = await self.hands.asked(self.number)

    async def finish(self) -> list[str]:
        with self.hands:
            await self.hands.approve(self.offer, self.number)  # ids are not used twice
            await self.hands.data(self.offer, BODY, self.number)
            assert (await self.hands.end()).result is Result.SUCCESS
        return await self.drained(self.name)

    async def again(self) -> list[str]:
        self.hands = HandSender(self.place.net, ASKING)
        answer = asyncio.ensure_future(self.hands.answer())
        while not answer.done():
            self.hands.ask(self.number)
            await asyncio.wait((answer,), timeout=ASK_S)
        self.offer = answer.result()
        return await self.finish()


class Sent(Held):
    """A message of an owned transmission queue whose destination is not there yet."""

    protocol = ""

    async def begin(self) -> None:
        await self.place.declare(self.name, remote=leading(self.protocol, self.number), **SOON)
        await put_by_tmq(self.place, self.name, 0, [BODY])

        async def is_out() -> bool:
            queue = await self.place.far.tools.catalogue.find(self.name)
            return bool((await self.place.far.tools.listing.stats(queue))["in_flight"])

        await until(is_out)

    async def finish(self) -> list[str]:
        await self.place.declare(arrived(self.name), bindings=numbered(self.protocol, self.number))
        return await self.drained(arrived(self.name))

    async def again(self) -> list[str]:
        return await self.finish()


class McaSent(Sent):
    protocol = "mca"


class CastSent(Sent):
    protocol = "cast"


LIVE: dict[str, type[Held]] = {
    "tmq document": TmqMessage,
    "tmq reference": ReferenceMessage,
    "tmq document transaction": TmqTransaction,
    "tmq reference transaction": ReferenceTransaction,
    "ring": RingMessage,
    "mca received": McaAssignment,
    "cast received": CastReservation,
    "mca sent": McaSent,
    "cast sent": CastSent,
}
KILLED: dict[str, type[Held]] = {**LIVE, "ring node": RingNode, "text link": TextLink}
SETTLED = tuple(kind for kind in LIVE if kind.startswith(("tmq", "ring")))  # by `finish`


def all_held(kinds: dict[str, type[Held]], place: World, first: int) -> dict[str, Held]:
    """Return a lease of each kind, each with its own queue and numbers from `first`."""
    return {
        kind: made(place, f"{kind} {first}".replace(" ", "-"), first + 10 * index)
        for index, (kind, made) in enumerate(kinds.items())
    }


LEASES: dict[str, Any] = {  # s; of edges of which one is killed
    "waits": {"session_timeout_s": 3.0, "heartbeat_s": 0.5, "sweep_s": 0.3},
    "rqp": {"outbox": {"lease_s": 2.0, "renew_s": 0.5, "look_s": 1.0}},
    "mca": {"reservation_ttl_s": 2.0},
    "cast": {"reservation_s": 2.0, "t_wait2_s": 60.0},
}
