"""The queues as a process knows them: found by name or number, declared, deleted, and the news of their changes."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from services.store.catalogue.domain_setup import DomainSetup
from services.store.catalogue.kept_promises import KeptPromises
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
)
from services.store.model.internal import RESERVED, is_internal
from services.store.model.queue_document import parse_leniently
from services.store.model.queues import Listed, Queue, released
from services.store.model.spec import QueueSpec
from services.store.model.unknown_after_commit import unknown_after_commit
from services.store.pipeline.domains import Domains
from services.store.pipeline.outcomes import tell


class Catalogue:
    """The queues of one store by their names. `numbers`: by those of protocols that number them."""

    def __init__(
        self, registry: Registry, domains: Domains, setup: DomainSetup, promises: KeptPromises, peers: Peers
    ) -> None:
        """peers: told of their changes, too."""
        self.numbers = Numbers(self._numbered, registry.all_numbers)
        self._registry = registry
        self._domains = domains
        self._setup = setup
        self._promises = promises
        self._peers = peers
        self._known: dict[str, Queue] = {}  # the newest handle of each name that anybody here has asked for
        # one for each life of a queue, by its id: whoever still has it follows the document, `access` before all
        self._handles: WeakValueDictionary[str, Queue] = WeakValueDictionary()
        self._sharing = Sharing(self._find)
        self._watchers: list[Watcher] = []

    def forget_all(self) -> None:
        """There is other data: everything is looked for again."""
        self._known.clear()
        self.numbers.changed()

    async def close(self) -> None:
        """Whoever still waits for a queue is told that nobody looks for it any more."""
        await self._sharing.close()
        await self.numbers.close()

    def known(self) -> list[Queue]:
        """All that anybody here has a handle of."""
        return [*self._handles.values()]

    def held(self, name: str) -> Queue | None:
        """The queue, if it is known without asking the store: as it was when last heard of."""
        return self._known.get(name)

    def forget(self, name: str) -> None:
        """The next who asks for it looks again."""
        self._known.pop(name, None)

    async def find(self, name: str) -> Queue:
        """The queue of this name, as it is now. Raises QueueUnknown, DatasetLost, StoreUnavailable."""
        return await self._sharing.ask(name)

    async def find_leniently(self, name: str) -> tuple[Queue, str]:
        """Also one whose spec cannot be read, and why not: to look at it, replace it, delete it. Raises as `find`."""
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
            await self._ask_for_loss(queue.domain)
            raise QueueUnknown(f"queue {name!r} is being deleted")
        handle = self._handles.setdefault(queue.qid, queue)
        if handle is not queue:
            handle.follow(queue.spec, queue.owner)
            handle.unkept = queue.unkept
        self._known[name] = handle
        return handle

    async def _ask_for_loss(self, domain: str) -> None:
        """Raises DatasetLost for a domain that was ready and is empty now: its queues are not gone for good."""
        if await self._domains.get(domain).epoch() == "" and domain in await self._registry.domains():
            raise domain_lost(domain)

    async def numbered(self, protocol: str, number: int) -> Queue:
        """The queue that this protocol knows by this number, as it is now. Raises QueueUnknown."""
        return await self.numbers.ask(protocol, number)

    async def _numbered(self, number: str) -> Queue:
        name = await self._registry.numbered(number)
        if name is None:
            raise QueueUnknown(f"there is no queue with the number {number}")
        return await self.find(name)

    async def remotes(self) -> list[Queue]:
        """The queues that lead to other systems."""
        found = []
        for name in await self._registry.remotes():
            # deleted meanwhile; others are not held up
            with contextlib.suppress(QueueUnknown, QueueUnreadable, DatasetLost):
                queue = await self.find(name)
                if queue.spec.remote is not None:
                    found.append(queue)
        return found

    async def leading_to(self, protocol: str, number: int) -> list[Queue]:
        """Of them, those that lead to this number of that protocol."""
        found = []
        for queue in await self.remotes():
            remote = queue.spec.remote
            if remote is not None and (remote.protocol, remote.number) == (protocol, number):
                found.append(queue)
        return found

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Tells of each queue whose document changes, comes or goes: its name, or EVERYTHING if that is not known.

        Only where this process looks after the store; handles have followed by then. Answers what ends it.
        """
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def changed(self, name: str) -> None:
        """Tells whoever watches."""
        if name.startswith(NOTICE):
            self._peers.changed(name.removeprefix(NOTICE))
            return
        for watcher in tuple(self._watchers):
            tell(watcher, name)
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
        """The queue, and whether it is new. replace=True changes an existing one to this document.

        seen: only if what there is, is still this `Registry.document`. internal: it is one of Penstock's own. Raises
        QueueExists (without replace), QueueChanged (with seen), NameReserved (without internal), DomainMismatch,
        AckLevelRefused, NumberTaken, StoreUnavailable, OutcomeUnknown.
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
            await self._registry.tell(name)
        return queue, bool(made)

    async def _level_of(self, name: str) -> str:
        """The ack level of the queue, '' if there is none."""
        try:
            return (await self.find_leniently(name))[0].spec.ack_level
        except QueueUnknown:
            return ""

    async def settled(self, spec: QueueSpec, there: Queue | None) -> QueueSpec:
        """The spec as `declare` would keep it now, in place of the queue that is there."""
        return (await self._promises.lately()).settled(
            spec, there.spec.ack_level if there is not None else ""
        )

    async def _make(self, queue: Queue, maker: str, fresh: bool) -> Any:
        """fresh: its domain is new."""
        domain = self._domains.get(queue.domain)
        if fresh:
            await self._setup.set_up(domain)
        # Whoever claimed the name may have died before this step, so everybody who finds it does it again.
        made = await domain.declare(queue, maker)
        if made == b"GONE":  # whoever deletes it has not freed the name yet
            await self._registry.forget(queue)
        return made

    async def release(self, one: Listed) -> bool:
        """Its owner looks after it no more: whoever declares it has it. False: it is another one's by now, or gone.

        Raises StoreUnavailable, OutcomeUnknown.
        """
        if not await self._registry.hand_over(one, released(one.owner)):
            return False
        with unknown_after_commit():
            await self._registry.tell(one.name)
        return True

    async def declared(self, queue: Queue) -> int:
        """How often its document was put in force: for `delete`, to see whether one was since."""
        return await self._domains.get(queue.domain).declared(queue)

    async def delete(self, queue: Queue, *, if_empty: bool = False, declared: int | None = None) -> int:
        """Removes queue, messages and dead letters; answers how many messages went.

        declared: only if it was `declared` no more often. Raises QueueNotEmpty, QueueChanged (with declared),
        NameReserved (for the queue of a ring node that runs), StoreUnavailable, OutcomeUnknown.
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
            await self._registry.tell(queue.name)
        return int(messages)
