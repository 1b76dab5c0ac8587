"""The catalogue: which queues and domains there are. Creating is two idempotent steps, so any process may finish
what another one began: the name is claimed with a queue id, then the queue's limits are written in its domain."""

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
EVERYTHING = ""  # no queue's name: a notice that everything may have changed


def claim_taken(claim: str, by: str) -> str:
    """Why nobody else may have 'rqp-mca 7', 'ring-inbox 7', 'to rqp-mca 7 at west'. claim: as the other has it."""
    kind, _, value = claim.partition(" ")
    if kind in (INBOX, OUTBOX):
        box = kind.removeprefix("ring-")
        return f"queue {by!r} is the {box} of ring group {value}: each group has one {box}"
    what, peer = split_claim(claim)
    if not peer:
        return (
            f"{what} is the number of queue {by!r}, and each number belongs to one: take another, or free it by "
            f"`penstock queue delete {by}`"
        )
    where = "every peer" if peer == "*" else f"peer {peer}"
    return (
        f"queue {by!r} leads {what} at {where} already, and two would keep each other out: put everything into that "
        "one; a message may say for itself whether it is reliable, by its attribute 'certain' or `penstock rqp send "
        "--reliable` and `--unreliable`"
    )


def new_dataset() -> str:
    return f"{secrets.token_hex(6)}.1"


async def begin_dataset(link: Link, key: str, epoch: str) -> str:
    """Begins a dataset where there is none; answers the epoch that is there now, whoever was first."""
    try:
        found = await link.function("set_epoch", [key], "", epoch, attempts=1)
    except DatasetLost:
        found = await link.call("GET", key)
    return str(found.decode())


async def _load_functions(connection: AbstractConnection) -> None:
    """Unless they are there: a load goes to the append-only file and to every replica, all of it each time."""
    found = loaded(await ask(connection, "FUNCTION", "LIST", "LIBRARYNAME", LIBRARY, "WITHCODE"))
    if found.get(b"library_code") != source().encode():
        await ask(connection, "FUNCTION", "LOAD", "REPLACE", source())


class Registry:
    def __init__(self, connector: Connector) -> None:
        self.keys = RegistryKeys()
        self.link = Link(connector, self.keys.epoch)
        self._connector = connector

    async def epoch(self) -> str:
        """'<dataset>.<generation>'. Raises NotInitialised where there is none."""
        found = await self.link.call("GET", self.keys.epoch)
        if found is None:
            raise NotInitialised
        return str(found.decode())

    async def initialise(self) -> str:
        """Loads the functions where they are not, begins a dataset if there is none; answers the epoch."""
        try:
            await self._connector.on_every_primary(_load_functions)
        except (RedisError, OSError, TimeoutError) as error:
            raise explain(error) from error
        epoch = await self.link.call("GET", self.keys.epoch)
        if epoch is None:
            # Queue ids go on from the store's clock: an id of an older dataset never names a queue of this one.
            await self.link.call("SET", self.keys.ids, await self.link.now_ms())
            return await begin_dataset(self.link, self.keys.epoch, new_dataset())
        return str(epoch.decode())

    async def claim(
        self, name: str, owner: str, spec: QueueSpec, *, replace: bool, seen: bytes = b""
    ) -> tuple[Queue, bool, bool]:
        """The queue as registered, whether the name was new, and whether its domain is still to be set up.

        seen: `document` as it has to be, to be replaced. Raises DomainMismatch, NumberTaken,
        QueueChanged.
        """
        own = self.keys
        keys = [own.epoch, own.queues, own.domains, own.ids, own.numbers, own.remotes]
        mode = "apply" if replace else "create"
        if seen:
            mode = f"{mode} {hashlib.sha1(seen).hexdigest()}"
        text = spec.model_dump_json(by_alias=True, exclude_defaults=True)
        document = (encode_name(name), owner, spec.domain, text, mode)
        index = (int(spec.remote is not None), *spec.claims())
        # asked again after an answer that was lost, it would find its own document
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
                f"queue {name!r} is in domain {domain.decode()!r}: it cannot move to {spec.domain!r}; "
                "say that domain, or make a queue of another name"
            )
        if seen and kept != text.encode():
            raise StoreFault("the store's functions are of an older version: run `penstock store init`")
        return queue_of(name, qid.decode(), domain.decode(), owner, kept), bool(new), bool(fresh)

    async def claim_domain(self, domain: str) -> bool:
        """Whether it is still to be set up. Raises NotInitialised."""
        await self.epoch()
        await self.link.call("HSETNX", self.keys.domains, domain, "new")
        return bool(await self.link.call("HGET", self.keys.domains, domain) != READY)

    async def domain_is_ready(self, domain: str) -> None:
        await self.link.call("HSET", self.keys.domains, domain, READY)

    async def forget(self, queue: Queue) -> bool:
        keys = [self.keys.epoch, self.keys.queues, self.keys.numbers, self.keys.remotes]
        return bool(
            await self.link.function(
                "unregister", keys, await self.epoch(), encode_name(queue.name), queue.qid
            )
        )

    async def hand_over(self, one: Listed, owner: str) -> bool:
        """False: it is another one's by now, or gone. Raises NotInitialised."""
        keys = [self.keys.epoch, self.keys.queues]
        words = (encode_name(one.name), one.qid, one.owner, owner)
        return bool(await self.link.function("hand_over", keys, await self.epoch(), *words))

    async def find(self, name: str) -> Queue | None:
        """None if there is no such queue. Raises NotInitialised: an empty store is not one without queues."""
        found = await self.document(name)
        return None if found is None else parse(name, found)

    async def document(self, name: str) -> bytes | None:
        """As it is kept: for queue_document.parse, and `claim`, whether it is still the same. Raises NotInitialised."""
        found = await self.link.call("HGET", self.keys.queues, encode_name(name))
        if found is None:
            await self.epoch()
        return None if found is None else bytes(found)

    async def listed(self) -> AsyncIterator[Listed]:
        """All of them, also those whose specs cannot be read; not those of which not even the id is known."""
        async for name, document in self.documents():
            with contextlib.suppress(QueueUnreadable):
                qid, _, owner, _ = fields(name, document)
                yield Listed(name, qid, owner)

    async def documents(self, beginning: str = "") -> AsyncIterator[tuple[str, bytes]]:
        """Names and documents as they are kept; one may be told twice. Raises NotInitialised."""
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
        """Queues by what they claim: 'rqp-mca 7' -> who has it, 'to rqp-mca 7 at shop' -> who leads there."""
        found = await self.link.call("HGETALL", self.keys.numbers)
        return {found[i].decode(): decode_name(found[i + 1]) for i in range(0, len(found), 2)}

    async def all_numbers(self) -> frozenset[str] | None:
        """'rqp-mca 7' of each queue, and what else is claimed; None if there are more than MAX_LISTED."""
        if await self.link.call("HLEN", self.keys.numbers) > MAX_LISTED:
            return None
        return frozenset(claim.decode() for claim in await self.link.call("HKEYS", self.keys.numbers))

    async def numbered(self, number: str) -> str | None:
        """The name of the queue that has this number, 'rqp-mca 7'. Raises NotInitialised."""
        found = await self.link.call("HGET", self.keys.numbers, number)
        if found is None:
            await self.epoch()
            return None
        return decode_name(found)

    async def remotes(self) -> list[str]:
        """The names of the queues that lead to other systems."""
        return [decode_name(name) for name in await self.link.call("SMEMBERS", self.keys.remotes)]

    async def next_ids(self, count: int) -> int:
        """The first of so many ids of 32 bits, one after the other, never 0 (rqp_cast.md 2.3).

        They come round after four thousand million. A new dataset, and a server that goes on with the data of another
        one or of an older copy, begins at a random place. An answer that is lost loses the ids.
        """
        keys, random = [self.keys.epoch, self.keys.cast_ids], secrets.randbelow(MAX_ID + 1)
        return int(await self.link.function("next_ids", keys, await self.epoch(), count, random))

    async def remember_reply(self, request: bytes, reply: str, keep_ms: int) -> str:
        """What a request of a ring to make or delete a queue is answered: the first that is said under its id stands.

        Answers the one that stands. The catalogue and this are two steps: who deletes a queue says so first, with its
        qid, and does it then; who finds that said, deletes that one if it is still there (ring.md 5.4).
        """
        check_id(request)
        key = self.keys.request(request)
        found = await self.link.call("SET", key, reply, "PX", keep_ms, "NX", "GET")
        return reply if found is None else str(found.decode())

    async def reply_of(self, request: bytes) -> str | None:
        """None: nothing was said under this id, or it is forgotten."""
        found = await self.link.call("GET", self.keys.request(request))
        return None if found is None else str(found.decode())

    async def domains(self) -> list[str]:
        found = await self.link.call("HGETALL", self.keys.domains)
        return [found[i].decode() for i in range(0, len(found), 2) if found[i + 1] == READY]

    async def tell(self, name: str) -> None:
        """Every process that holds the queue looks at its document again."""
        await self.link.call("PUBLISH", self.keys.changes, encode_name(name))

    async def close(self) -> None:
        await self.link.close()
