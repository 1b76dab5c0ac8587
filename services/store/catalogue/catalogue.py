"""Find queues by name or number, declare and delete them, and notify watchers of changes."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from services.store.catalogue.domain_setup import DomainSetup
from services.store.catalogue.durability_guarantees import KeptPromises
from services.store.catalogue.numbers import Numbers
from services.store.catalogue.peers import NOTICE, Peers, Watcher
from services.store.catalogue.registry import EVERYTHING, Registry
from services.store.catalogue.sharing import Sharing
from services.store.model.errors import (
    DatasetLost,
    NameReserved,
    QueueExists,
    QueueNotEmpty,
    QueueUnknown,
    QueueUnreadable,
    domain_lost,
    unknown_after_commit,
)
from services.store.model.internal import RESERVED, is_internal
from services.store.model.queue_document import parse_leniently
from services.store.model.queues import Listed, Queue, released
from services.store.model.spec import QueueSpec
from services.store.pipeline.domains import Domains
from services.store.pipeline.outcomes import notify


class Catalogue:
    """The queues of one store by name."""

    def __init__(
        self, registry: Registry, domains: Domains, setup: DomainSetup, promises: KeptPromises, peers: Peers
    ) -> None:
        """Notify `peers` of changes of peers, which use the same channel."""
        self.numbers = Numbers(self._numbered, registry.all_numbers)  # queues by the numbers of protocols
        self._registry = registry
        self._domains = domains
        self._setup = setup
        self._promises = promises
        self._peers = peers
        self._known: dict[str, Queue] = {}  # the latest handle of each name in use
        # by queue id: handles in use are updated when the document changes, above all its `access`
        self._handles: WeakValueDictionary[str, Queue] = WeakValueDictionary()
        self._sharing = Sharing(self._find)
        self._watchers: list[Watcher] = []

    def forget_all(self) -> None:
        """Forget all queues, as the store has another dataset."""
        self._known.clear()
        self.numbers.changed()

    async def close(self) -> None:
        """Fail all lookups in progress with StoreUnavailable."""
        await self._sharing.close()
        await self.numbers.close()

    def known(self) -> list[Queue]:
        """Return all queues with handles in use."""
        return [*self._handles.values()]

    def held(self, name: str) -> Queue | None:
        """Return the queue from the cache, or None."""
        return self._known.get(name)

    def forget(self, name: str) -> None:
        """Remove a queue from the cache."""
        self._known.pop(name, None)

    async def find(self, name: str) -> Queue:
        """Return the current queue of this name.

        Raises:
            QueueUnknown: There is no such queue, or it is being deleted.
            DatasetLost: The queue's domain was ready and is empty now.
            StoreUnavailable: The store cannot be reached.
        """
        return await self._sharing.ask(name)

    async def find_leniently(self, name: str) -> tuple[Queue, str]:
        """Return the queue, and why its spec cannot be read, or ''. Raises the errors of `find`."""
        try:
            return await self.find(name), ""
        except QueueUnreadable:
            document = await self._registry.document(name)
        if document is None:
            raise QueueUnknown(f"there is no queue {name!r}")
        return parse_leniently(name, document)

    async def _find(self, name: str) -> Queue:
        queue = await self._registry.find(name)
        if queue is None:
            raise QueueUnknown(f"there is no queue {name!r}")
        queue.unkept = not (await self._promises.lately()).keeps(queue.spec.ack_level)
        held = self._known.get(name)
        if held is not None and held.qid == queue.qid:
            held.follow(queue.spec, queue.owner)
            held.unkept = queue.unkept
            return held
        found = await self._domains.get(queue.domain).link.call("HGET", queue.keys[1], "id")
        if found is None:
            await self._check_loss(queue.domain)
            raise QueueUnknown(f"queue {name!r} is being deleted")
        handle = self._handles.setdefault(queue.qid, queue)
        if handle is not queue:
            handle.follow(queue.spec, queue.owner)
            handle.unkept = queue.unkept
        self._known[name] = handle
        return handle

    async def _check_loss(self, domain: str) -> None:
        """Raise DatasetLost if the domain was ready and is empty now, as its queues may be restored."""
        if await self._domains.get(domain).epoch() == "" and domain in await self._registry.domains():
            raise domain_lost(domain)

    async def numbered(self, protocol: str, number: int) -> Queue:
        """Return the current queue with this number in a protocol. Raises QueueUnknown."""
        return await self.numbers.ask(protocol, number)

    async def _numbered(self, number: str) -> Queue:
        name = await self._registry.numbered(number)
        if name is None:
            raise QueueUnknown(f"there is no queue with the number {number}")
        return await self.find(name)

    async def remotes(self) -> list[Queue]:
        """Return the queues that lead to other systems."""
        found = []
        for name in await self._registry.remotes():
            # skips queues that were deleted meanwhile
            with contextlib.suppress(QueueUnknown, QueueUnreadable, DatasetLost):
                queue = await self.find(name)
                if queue.spec.remote is not None:
                    found.append(queue)
        return found

    async def leading_to(self, protocol: str, number: int) -> list[Queue]:
        """Return the queues that lead to this number in a protocol."""
        found = [(queue, queue.spec.remote) for queue in await self.remotes()]
        return [
            queue
            for queue, remote in found
            if remote is not None and (remote.protocol, remote.number) == (protocol, number)
        ]

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` with the name of each queue that is created, changed or deleted, or EVERYTHING if unknown.

        Works only in processes that take part in upkeep; handles are up to date by then. Returns a function that
        removes the watcher.
        """
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def changed(self, name: str) -> None:
        """Notify the watchers of a change."""
        if name.startswith(NOTICE):
            self._peers.changed(name.removeprefix(NOTICE))
            return
        for watcher in tuple(self._watchers):
            notify(watcher, name)
        if name == EVERYTHING:
            self._peers.changed(name)

    async def declare(
        self,
        name: str,
        spec: QueueSpec,
        owner: str,
        *,
        replace: bool = False,
        seen: bytes = b"",
        internal: bool = False,
    ) -> tuple[Queue, bool]:
        """Create a queue, or with `replace` change it; return the queue and whether it is new.

        Args:
            name: 1 to 255 octets.
            spec: How it stores messages.
            owner: Who declares it, as `cli`; shown to operators.
            replace: Change a queue that is there.
            seen: The expected current `Registry.document`.
            internal: Allow the name of an internal queue.

        Raises:
            QueueExists: Without `replace`: the name is taken.
            QueueChanged: With `seen`: the document is another one.
            NameReserved: Without `internal`: the name is for internal queues.
            DomainMismatch: The queue is in another domain, which cannot be changed.
            AckLevelRefused: The store cannot guarantee the ack level.
            NumberTaken: Another queue has this number in a protocol, or leads to it.
            StoreUnavailable: Nothing was done.
            OutcomeUnknown: The change may have been made.
        """
        if is_internal(name) and not internal:
            raise NameReserved(f"queue {name!r}: {RESERVED}; choose another name")
        promises = await self._promises.now()
        had = await self._level_of(name) if replace else ""
        spec = promises.settled(spec, had)
        promises.check(spec.ack_level, had)
        maker = secrets.token_hex(8)
        made: Any = b"GONE"
        while made == b"GONE":
            queue, _, fresh = await self._registry.claim(name, owner, spec, replace=replace, seen=seen)
            with unknown_after_commit():
                made = await self._make(queue, maker, fresh)
        if not made and not replace:
            raise QueueExists(f"a queue {name!r} exists already")
        self.numbers.changed()
        with unknown_after_commit():
            await self._registry.publish_change(name)
        return queue, bool(made)

    async def _level_of(self, name: str) -> str:
        """Return the ack level of the queue, '' if there is no queue."""
        try:
            return (await self.find_leniently(name))[0].spec.ack_level
        except QueueUnknown:
            return ""

    async def settled(self, spec: QueueSpec, there: Queue | None) -> QueueSpec:
        """Return the spec as `declare` would store it now, replacing the existing queue."""
        return (await self._promises.lately()).settled(
            spec, there.spec.ack_level if there is not None else ""
        )

    async def _make(self, queue: Queue, maker: str, fresh: bool) -> Any:
        """Create the queue in its domain; return b"GONE" if its deletion is in progress. fresh: the domain is new."""
        domain = self._domains.get(queue.domain)
        if fresh:
            await self._setup.set_up(domain)
        # The process that claimed the name may have died before this step, so it is repeated.
        made = await domain.declare(queue, maker)
        if made == b"GONE":  # the deletion has not freed the name yet
            await self._registry.forget(queue)
        return made

    async def release(self, one: Listed) -> bool:
        """Release the queue from its owner, so that the next declaration takes it over.

        Returns False if it has another owner by now or is deleted. Raises StoreUnavailable, OutcomeUnknown.
        """
        if not await self._registry.hand_over(one, released(one.owner)):
            return False
        with unknown_after_commit():
            await self._registry.publish_change(one.name)
        return True

    async def declared(self, queue: Queue) -> int:
        """Return how often the queue was declared, for the same argument of `delete`."""
        return await self._domains.get(queue.domain).declared(queue)

    async def delete(self, queue: Queue, *, if_empty: bool = False, declared: int | None = None) -> int:
        """Delete the queue with its messages and dead letters; return how many messages were deleted.

        Args:
            queue: Its handle, which stays invalid afterwards.
            if_empty: Refuse to delete messages or dead letters.
            declared: The expected number of declarations, see `declared`.

        Raises:
            QueueNotEmpty: With `if_empty`: it holds messages or dead letters.
            QueueChanged: With `declared`: it was declared again.
            NameReserved: It belongs to a ring node that runs.
            StoreUnavailable: Nothing was done.
            OutcomeUnknown: It may have been deleted.
        """
        domain = self._domains.get(queue.domain)
        policy = "DeleteIfEmpty" if if_empty else "Delete"
        done, messages = await domain.delete(queue, policy, declared)
        if not done:
            raise QueueNotEmpty(f"queue {queue.name!r} holds {messages} messages, or dead letters")
        with unknown_after_commit():
            await self._registry.forget(queue)
            self._known.pop(queue.name, None)
            self.numbers.changed()
            await self._registry.publish_change(queue.name)
        return int(messages)
