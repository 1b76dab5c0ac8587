"""Store the catalogue of queues and domains.

Creating a queue has two idempotent steps, so that any process can finish what another one began: claim the name with a
queue id, then write the queue's limits in its domain.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import secrets
from collections.abc import AsyncIterator

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError

from services.store.model.errors import (
    DatasetLost,
    DomainMismatch,
    NotInitialised,
    NumberTaken,
    QueueChanged,
    QueueUnreadable,
    StoreFault,
)
from services.store.model.identities import check_id
from services.store.model.keys import RegistryKeys
from services.store.model.names import decode_name, encode_name
from services.store.model.queue_document import fields, parse, queue_of
from services.store.model.queues import Listed, Queue
from services.store.model.ring_binding import INBOX, OUTBOX
from services.store.model.rqp_binding import split_claim
from services.store.model.spec import QueueSpec
from services.store.redis.connect import Connector, ask
from services.store.redis.library import LIBRARY, loaded, source
from services.store.redis.link import Link, explain

READY = b"ready"
MAX_ID = 0xFFFF_FFFF
MAX_LISTED = 100_000  # claims that a process keeps in memory
EVERYTHING = ""  # a notice that any queue may have changed


def claim_taken(claim: str, by: str) -> str:
    """Return why a claim of another queue ('rqp-mca 7', 'ring-inbox 7', 'to rqp-mca 7 at west') is refused."""
    kind, _, value = claim.partition(" ")
    if kind in (INBOX, OUTBOX):
        box = kind.removeprefix("ring-")
        return f"queue {by!r} is the {box} of ring group {value}: each group has one {box}"
    what, peer = split_claim(claim)
    if not peer:
        return (
            f"{what} is the number of queue {by!r}: choose another number, or free it with "
            f"`penstock queue delete {by}`"
        )
    where = "every peer" if peer == "*" else f"peer {peer}"
    return (
        f"queue {by!r} already leads {what} at {where}, and two senders would block each other: put all messages into "
        "it; the attribute 'certain', or `penstock rqp send --reliable` and `--unreliable`, sets the reliability of a "
        "message"
    )


def new_dataset() -> str:
    """Return the epoch of a new dataset, in its first generation."""
    return f"{secrets.token_hex(6)}.1"


async def begin_dataset(link: Link, key: str, epoch: str) -> str:
    """Begin a dataset unless there is one; return the current epoch."""
    try:
        found = await link.function("set_epoch", [key], "", epoch, attempts=1)
    except DatasetLost:
        found = await link.call("GET", key)
    return str(found.decode())


async def _load_functions(connection: AbstractConnection) -> None:
    """Load the functions if they differ: a load is written to the append-only file and to every replica."""
    found = loaded(await ask(connection, "FUNCTION", "LIST", "LIBRARYNAME", LIBRARY, "WITHCODE"))
    if found.get(b"library_code") != source().encode():
        await ask(connection, "FUNCTION", "LOAD", "REPLACE", source())


class Registry:
    """The stored catalogue. Every method raises StoreUnavailable."""

    def __init__(self, connector: Connector) -> None:
        self.keys = RegistryKeys()
        self.link = Link(connector, self.keys.epoch)
        self._connector = connector

    async def epoch(self) -> str:
        """Return the epoch, '<dataset>.<generation>'. Raises NotInitialised if it is missing."""
        found = await self.link.call("GET", self.keys.epoch)
        if found is None:
            raise NotInitialised
        return str(found.decode())

    async def initialise(self) -> str:
        """Load the functions where they are missing, begin a dataset in an empty store, and return the epoch."""
        try:
            await self._connector.on_every_primary(_load_functions)
        except (RedisError, OSError, TimeoutError) as error:
            raise explain(error) from error
        epoch = await self.link.call("GET", self.keys.epoch)
        if epoch is None:
            # Queue ids start at the store's time, so that ids of an older dataset are never reused.
            await self.link.call("SET", self.keys.ids, await self.link.now_ms())
            return await begin_dataset(self.link, self.keys.epoch, new_dataset())
        return str(epoch.decode())

    async def claim(
        self, name: str, owner: str, spec: QueueSpec, *, replace: bool, seen: bytes = b""
    ) -> tuple[Queue, bool, bool]:
        """Register a queue; return it, whether its name was new, and whether its domain is yet to be set up.

        seen: the expected current `document`. Raises DomainMismatch, NumberTaken, QueueChanged.
        """
        own = self.keys
        keys = [own.epoch, own.queues, own.domains, own.ids, own.numbers, own.remotes]
        mode = "apply" if replace else "create"
        if seen:
            mode = f"{mode} {hashlib.sha1(seen).hexdigest()}"
        text = spec.model_dump_json(by_alias=True, exclude_defaults=True)
        document = (encode_name(name), owner, spec.domain, text, mode)
        index = (int(spec.remote is not None), *spec.claims())
        # a retry after a lost answer would find its own document
        reply = await self.link.function(
            "register", keys, await self.epoch(), *document, *index, attempts=1 if seen else 2
        )
        if reply == b"CHANGED":
            raise QueueChanged
        if reply[0] == b"TAKEN":
            raise NumberTaken(claim_taken(reply[1].decode(), decode_name(reply[2])))
        qid, domain, new, kept, fresh = reply
        if replace and domain.decode() != spec.domain:  # nothing was changed
            raise DomainMismatch(
                f"queue {name!r} is in domain {domain.decode()!r} and cannot move to {spec.domain!r}: use its domain, "
                "or create a queue with another name"
            )
        if seen and kept != text.encode():
            raise StoreFault("the store's functions are of an older version: run `penstock store init`")
        return queue_of(name, qid.decode(), domain.decode(), owner, kept), bool(new), bool(fresh)

    async def claim_domain(self, domain: str) -> bool:
        """Register a domain; return whether it is yet to be set up. Raises NotInitialised."""
        await self.epoch()
        await self.link.call("HSETNX", self.keys.domains, domain, "new")
        return bool(await self.link.call("HGET", self.keys.domains, domain) != READY)

    async def domain_is_ready(self, domain: str) -> None:
        """Record that a domain is set up."""
        await self.link.call("HSET", self.keys.domains, domain, READY)

    async def forget(self, queue: Queue) -> bool:
        """Remove a queue from the catalogue; return whether it was there."""
        keys = [self.keys.epoch, self.keys.queues, self.keys.numbers, self.keys.remotes]
        return bool(
            await self.link.function(
                "unregister", keys, await self.epoch(), encode_name(queue.name), queue.qid
            )
        )

    async def hand_over(self, one: Listed, owner: str) -> bool:
        """Change the owner; return False if it has another owner by now or is deleted. Raises NotInitialised."""
        keys = [self.keys.epoch, self.keys.queues]
        args = (encode_name(one.name), one.qid, one.owner, owner)
        return bool(await self.link.function("hand_over", keys, await self.epoch(), *args))

    async def find(self, name: str) -> Queue | None:
        """Return the queue, or None. Raises NotInitialised for an empty store."""
        found = await self.document(name)
        return None if found is None else parse(name, found)

    async def document(self, name: str) -> bytes | None:
        """Return the stored document, for `queue_document.parse` and `seen`, or None. Raises NotInitialised."""
        found = await self.link.call("HGET", self.keys.queues, encode_name(name))
        if found is None:
            await self.epoch()
        return None if found is None else bytes(found)

    async def listed(self) -> AsyncIterator[Listed]:
        """Yield all queues whose ids can be read, with their owners."""
        async for name, document in self.documents():
            with contextlib.suppress(QueueUnreadable):
                qid, _, owner, _ = fields(name, document)
                yield Listed(name, qid, owner)

    async def documents(self, beginning: str = "") -> AsyncIterator[tuple[str, bytes]]:
        """Yield names and stored documents, possibly with duplicates. Raises NotInitialised."""
        await self.epoch()
        cursor, pattern = b"0", re.sub(rb"([\\[\]*?^-])", rb"\\\1", encode_name(beginning)) + b"*"
        match = ("MATCH", pattern) if beginning else ()
        while True:
            cursor, found = await self.link.call("HSCAN", self.keys.queues, cursor, *match, "COUNT", 500)
            for i in range(0, len(found), 2):
                yield decode_name(found[i]), found[i + 1]
            if cursor == b"0":
                return

    async def numbers(self) -> dict[str, str]:
        """Return queue names by claim: 'rqp-mca 7', 'to rqp-mca 7 at shop'."""
        found = await self.link.call("HGETALL", self.keys.numbers)
        return {found[i].decode(): decode_name(found[i + 1]) for i in range(0, len(found), 2)}

    async def all_numbers(self) -> frozenset[str] | None:
        """Return all claims, such as 'rqp-mca 7'; None if there are more than MAX_LISTED."""
        if await self.link.call("HLEN", self.keys.numbers) > MAX_LISTED:
            return None
        return frozenset(claim.decode() for claim in await self.link.call("HKEYS", self.keys.numbers))

    async def numbered(self, number: str) -> str | None:
        """Return the name of the queue with a number, 'rqp-mca 7', or None. Raises NotInitialised."""
        found = await self.link.call("HGET", self.keys.numbers, number)
        if found is None:
            await self.epoch()
            return None
        return decode_name(found)

    async def remotes(self) -> list[str]:
        """Return the names of the queues that lead to other systems."""
        return [decode_name(name) for name in await self.link.call("SMEMBERS", self.keys.remotes)]

    async def next_ids(self, count: int) -> int:
        """Reserve `count` consecutive ids of 32 bits, never 0, and return the first (rqp_cast.md 2.3).

        Ids repeat after 2^32. New datasets and generations begin at a random id. A lost answer loses its ids.
        """
        keys, random = [self.keys.epoch, self.keys.cast_ids], secrets.randbelow(MAX_ID + 1)
        return int(await self.link.function("next_ids", keys, await self.epoch(), count, random))

    async def remember_reply(self, request: bytes, reply: str, keep_ms: int) -> str:
        """Remember the reply to a ring's request to create or delete a queue; return the first reply under its id.

        Because this and the change of the catalogue are two steps, a deletion first remembers the qid and then deletes;
        a repeated request deletes the remembered queue if it still exists (ring.md 5.4).
        """
        check_id(request)
        key = self.keys.request(request)
        found = await self.link.call("SET", key, reply, "PX", keep_ms, "NX", "GET")
        return reply if found is None else str(found.decode())

    async def reply_of(self, request: bytes) -> str | None:
        """Return the remembered reply to a request, None if it is unknown or has expired."""
        found = await self.link.call("GET", self.keys.request(request))
        return None if found is None else str(found.decode())

    async def domains(self) -> list[str]:
        """Return the names of the domains that are set up."""
        found = await self.link.call("HGETALL", self.keys.domains)
        return [found[i].decode() for i in range(0, len(found), 2) if found[i + 1] == READY]

    async def publish_change(self, name: str) -> None:
        """Notify all processes to reload a queue's document."""
        await self.link.call("PUBLISH", self.keys.changes, encode_name(name))

    async def close(self) -> None:
        """Close the connections of the catalogue."""
        await self.link.close()
