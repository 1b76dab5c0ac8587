"""Access the store besides the operator, with one connection for each call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from services.store import DeadLetters, Queue, QueueSpec, Source
from services.store.model.errors import NotInitialised, QueueUnknown
from services.store.model.internal import KEEPER, is_internal
from services.store.model.peer import Peer, PeerSpec
from tests.servers import Server
from tests.store.desk import Desk, bodies, numbered

ResultT = TypeVar("ResultT")


class Keeper:
    def __init__(self, server: Server) -> None:
        self._server = server

    def do(self, work: Callable[[Desk], Awaitable[ResultT]], *, set_up: bool = False) -> ResultT:
        async def once() -> ResultT:
            desk = Desk(self._server, edge="keeper", initialise=set_up)
            try:
                if set_up:
                    await desk.store.initialise()
                return await work(desk)
            finally:
                await desk.close(1.0)

        return asyncio.run(once())

    def find(self, name: str) -> Queue | None:
        async def read(desk: Desk) -> Queue | None:
            try:
                return await desk.store.catalogue.find(name)
            except (QueueUnknown, NotInitialised):
                return None

        return self.do(read)

    def spec(self, name: str) -> QueueSpec:
        """Return the spec of a queue that exists."""
        queue = self.find(name)
        assert queue is not None
        return queue.spec

    def owner(self, name: str) -> str:
        """Return the owner of a queue, or '' if there is no such queue."""
        queue = self.find(name)
        return "" if queue is None else queue.owner

    def declare(self, name: str, owner: str = "file", **spec: Any) -> None:
        async def declare(desk: Desk) -> None:
            document, internal = QueueSpec.model_validate(spec), is_internal(name)
            await desk.store.catalogue.declare(name, document, owner, replace=True, internal=internal)

        self.do(declare, set_up=True)

    def remove(self, name: str) -> None:
        async def remove(desk: Desk) -> None:
            await desk.store.catalogue.delete(await desk.store.catalogue.find(name))

        self.do(remove)

    def stats(self, name: str) -> dict[str, Any]:
        async def read(desk: Desk) -> dict[str, Any]:
            return await desk.store.listing.stats(await desk.store.catalogue.find(name))

        return self.do(read)

    def put(self, name: str, *messages: bytes) -> None:
        async def put(desk: Desk) -> None:
            desk.source = Source(KEEPER)  # also into the internal queues of ring nodes
            await desk.put(await desk.store.catalogue.find(name), *messages)

        self.do(put)

    def take(self, name: str) -> list[bytes]:
        """Take and return all messages."""

        async def take(desk: Desk) -> list[bytes]:
            return await desk.drain(await desk.store.catalogue.find(name))

        return self.do(take)

    def kill(self, name: str, number: int, reason: str = "refused", first: int = 0) -> None:
        """Create this many dead letters, with bodies from m00000."""

        async def kill(desk: Desk) -> None:
            queue = await desk.store.catalogue.find(name)
            for at in range(first, first + number, 1000):
                await desk.put(queue, *numbered(min(1000, first + number - at), at))
                await desk.reject(await desk.take(queue, 1000), reason)

        self.do(kill)

    def dead(self, name: str) -> list[bytes]:
        async def read(desk: Desk) -> list[bytes]:
            queue = await desk.store.catalogue.find(name)
            letters = DeadLetters(desk.store.get_domain(queue.domain), queue)
            return [letter.body async for letter in letters.matching()]

        return self.do(read)

    def runs(self, name: str) -> int:
        """Return the number of redrives that the store counts for the queue."""
        queue = self.find(name)
        assert queue is not None
        fields = self._server.call("HKEYS", queue.keys[1])
        return sum(field.startswith(b"redrive:") for field in fields)

    def lose_domain(self, name: str) -> None:
        """Delete all keys of the domain, as if its shard had lost its data."""
        for key in self._server.call("KEYS", f"ps:{{{name}}}*"):
            self._server.call("DEL", key)

    def spoil(self, name: str) -> None:
        """Corrupt the queue's entry, so that lookups fail."""
        queue = self.find(name)
        assert queue is not None
        self._server.call("SET", queue.keys[1], "corrupt")

    def purge(self, name: str) -> None:
        """Delete all dead letters."""

        async def purge(desk: Desk) -> None:
            queue = await desk.store.catalogue.find(name)
            letters = DeadLetters(desk.store.get_domain(queue.domain), queue)
            await letters.purge([letter.id async for letter in letters.matching()])

        self.do(purge)

    def peers(self) -> dict[str, tuple[str, tuple[str, ...]]]:
        """Return owner and addresses by name."""

        async def read(desk: Desk) -> dict[str, tuple[str, tuple[str, ...]]]:
            found = await desk.store.peers.all()
            return {one.name: (one.owner, one.spec.addresses) for one in found if isinstance(one, Peer)}

        return self.do(read)

    def apply_peer(self, name: str, owner: str, **spec: Any) -> None:
        async def apply(desk: Desk) -> None:
            await desk.store.peers.apply(name, PeerSpec.model_validate(spec), owner)

        self.do(apply, set_up=True)


__all__ = ["Keeper", "bodies"]
