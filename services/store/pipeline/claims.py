"""Claims on a queue, for a while: who alone may put messages in (reservations), who alone serves it (ownership)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from services.store.model.errors import (
    NameReserved,
    QueueReserved,
    QueueServed,
    QueueUnknown,
    StoreError,
    refusal,
)
from services.store.model.internal import is_of_node
from services.store.model.keys import DomainKeys
from services.store.model.queues import Queue
from services.store.pipeline.tallies import Tallies
from services.store.redis.link import Link
from services.store.redis.process_names import has_died

log = logging.getLogger(__name__)

MAX_CONDITION = 500  # characters


@dataclass(frozen=True, slots=True)
class Asked:
    """A question for which a queue is reserved: several processes may have got it, and one is enough to answer it."""

    asker: str  # who asks
    age_ms: int  # since it came
    ours: str  # how the names of this process's holders begin: it knows itself what it has answered


class Function(Protocol):
    """Calls one of our functions under the domain's epoch (`Domain.function`)."""

    def __call__(self, name: str, keys: list[str], *args: Any) -> Awaitable[Any]: ...


class Claims:
    """The claims of one domain.

    Every method also raises StoreUnavailable, and OutcomeUnknown where an answer was lost: it may be asked again.
    """

    def __init__(self, keys: DomainKeys, link: Link, tallies: Tallies, function: Function) -> None:
        """link: over which `function` calls, and all else is looked up."""
        self._keys = keys
        self._link = link
        self._tallies = tallies
        self._function = function

    async def reserve(self, queue: Queue, holder: str, ttl_ms: int, asked: Asked | None = None) -> int:
        """From now on `holder` alone may publish (with holder=...): a fence number, kept when it is renewed.

        A paused queue is given to nobody, but whoever has it may renew. Raises QueueReserved (its message says by whom,
        and for how long), QueuePaused, QueueUnknown; QueueServed where another process answered what was `asked`;
        ValueError for a holder that is empty or begins with '?', which `publish` means something else by.
        """
        if not holder or holder.startswith("?"):
            raise ValueError(f"{holder!r} cannot hold a reservation: the name is empty, or begins with '?'")
        question = () if asked is None else (asked.age_ms, asked.asker, asked.ours)
        ask = partial(self._function, "reserve", [queue.keys[1]], holder, ttl_ms, *question)
        return int(self._granted(queue, await self._past_the_dead(queue, ask)))

    async def available(self, queue: Queue, holder: str) -> None:
        """Returns if `holder` could put a message in now: nothing is reserved for it.

        Raises QueueUnknown, QueuePaused, QueueFull, QueueReserved (by somebody else), StoreFull and the like.
        """
        ask = partial(self._link.function, "available", list(queue.keys), holder)
        self._granted(queue, await self._past_the_dead(queue, ask))

    async def _past_the_dead(self, queue: Queue, ask: Callable[[], Awaitable[Any]]) -> Any:
        """Return the reply; where a dead process of this machine holds the queue, it is freed and asked for again."""
        reply = await ask()
        if not isinstance(reply, list) or reply[0] != b"RESERVED":
            return reply
        holder = reply[1].decode("utf-8", "replace")
        if not has_died(holder):
            return reply
        log.info("freed what a dead process reserved", extra={"action": "claim_freed", "holder": holder})
        await self.release_reservation(queue, holder, fence=0)
        return await ask()

    async def release_reservation(self, queue: Queue, holder: str, fence: int, asker: str = "") -> bool:
        """Frees it, if it is still the same one. asker: whose question has been answered with it.

        fence: 0 where the answer that told it was lost, for a holder that asked only once.
        """
        return bool(await self._function("release", [queue.keys[1]], holder, fence, asker))

    async def own(self, queue: Queue, owner: str, ttl_ms: int) -> int | None:
        """From now on `owner` alone serves the queue: a fence number, kept when it is renewed.

        None: somebody else owns it. Each new owner, and one that renews too late, gets a higher number. Whoever cannot
        renew must stop in time: the store leases messages to anybody. Raises QueueUnknown.
        """
        ask = partial(self._function, "own", [queue.keys[1]], owner, ttl_ms)
        fence = int(self._granted(queue, await ask()))
        if not fence and await self._disown_dead(queue):
            fence = int(self._granted(queue, await ask()))
        return fence or None

    async def _disown_dead(self, queue: Queue) -> bool:
        """Take the queue from a process of this machine that has died; False where its owner may live."""
        found = await self._link.call("HMGET", queue.keys[1], "own", "own_fence")
        owner = (found[0] or b"").decode("utf-8", "replace")
        if not has_died(owner):
            return False
        log.info("freed what a dead process owned", extra={"action": "claim_freed", "holder": owner})
        return await self.disown(queue, owner, int(found[1]))

    async def disown(self, queue: Queue, owner: str, fence: int) -> bool:
        """The next one may own it at once. False: it was another's already."""
        return bool(await self._function("disown", [queue.keys[1]], owner, fence))

    async def check_unserved(self, queue: Queue) -> None:
        """Raise NameReserved if this is the queue of a ring node that runs: nothing else takes messages out of it."""
        if not is_of_node(queue.name, queue.owner):
            return
        owner, until = await self._link.call("HMGET", queue.keys[1], "own", "own_until")
        if owner and int(until) > await self._link.now_ms():
            raise NameReserved(
                f"queue {queue.name!r}: its ring node is running; stop the node, then try again in a few seconds"
            )

    async def reclaim(self, queue: Queue, fence: int) -> int | None:
        """All that anybody has leased goes back to its places, unharmed, for an owner begins anew: how many messages.

        None: the fence number is an owner's of before. Whoever had a lease finds it lost.
        """
        leases = await self._link.call("HGETALL", queue.keys[2])
        moved = 0
        for number, lot in zip(leases[::2], leases[1::2], strict=True):
            session = lot.decode().partition(" ")[0]
            keys = [self._keys.lots(session), *queue.keys]
            back = int(await self._function("reclaim", keys, session, number, fence))
            if back < 0:
                return None
            self._tallies.of(queue).returned += back
            moved += back
        return moved

    async def set_condition(self, queue: Queue, text: str, fence: int, errors: int = 0) -> bool:
        """What is wrong with the queue, for whoever looks at it; '' = nothing. It stays until an owner says otherwise.

        errors: attempts to send that have failed since it was last told, added to the queue's `send_errors`.
        False: the fence number is an owner's of before, and nothing was changed.
        """
        said = text[:MAX_CONDITION].encode("utf-8", "replace")
        return bool(await self._function("set_condition", [queue.keys[1]], said, fence, errors))

    @staticmethod
    def _granted(queue: Queue, reply: Any) -> Any:
        """The reply, unless it is a refusal: then that is raised."""
        if isinstance(reply, list):
            raise _served(queue, *reply[1:]) if reply[0] == b"SERVED" else _reserved(queue, *reply[1:])
        if isinstance(reply, bytes):
            raise _unknown(queue) if reply == b"GONE" else refusal(reply)
        return reply


def _reserved(queue: Queue, holder: bytes, left_ms: bytes) -> StoreError:
    by = holder.decode("utf-8", "replace")
    return QueueReserved(f"queue {queue.name!r} is reserved by {by} for {int(left_ms) / 1000:.1f} s more")


def _served(queue: Queue, by: bytes) -> StoreError:
    return QueueServed(f"{by.decode('utf-8', 'replace')} has had queue {queue.name!r} for this question")


def _unknown(queue: Queue) -> StoreError:
    return QueueUnknown(f"there is no queue {queue.name!r}")
