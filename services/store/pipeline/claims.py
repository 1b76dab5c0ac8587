"""Exclusive, expiring claims on a queue: reservations (sole publisher) and ownership (sole server)."""

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
    """A question for which a queue is reserved. Several processes may receive it; only one may answer."""

    asker: str
    age_ms: int  # since it was received
    ours: str  # prefix of the holders' names of this process, which knows what it has answered itself


class Function(Protocol):
    """`Domain.function`."""

    def __call__(self, name: str, keys: list[str], *args: Any) -> Awaitable[Any]:
        """Call a library function under the domain's epoch."""


class Claims:
    """Claims on the queues of one domain.

    Every method also raises StoreUnavailable, and OutcomeUnknown where a reply was lost; the call may then be repeated.
    """

    def __init__(self, keys: DomainKeys, link: Link, tallies: Tallies, function: Function) -> None:
        """Send reads over `link`; `function` uses the same connection."""
        self._keys = keys
        self._link = link
        self._tallies = tallies
        self._function = function

    async def reserve(self, queue: Queue, holder: str, ttl_ms: int, asked: Asked | None = None) -> int:
        """Reserve the queue, or renew the reservation; return its fencing token, which a renewal keeps.

        Until `ttl_ms` is over, only publishes with holder=`holder` are accepted. A reservation on a paused queue can be
        renewed, but not begun. Raises QueueReserved (it names the holder and the time left), QueuePaused, QueueUnknown;
        QueueServed where another process has answered `asked`; ValueError for a holder that is empty or begins with
        '?', which has another meaning for `publish`.
        """
        if not holder or holder.startswith("?"):
            raise ValueError(f"{holder!r} cannot hold a reservation: the name is empty or begins with '?'")
        question = () if asked is None else (asked.age_ms, asked.asker, asked.ours)
        ask = partial(self._function, "reserve", [queue.keys[1]], holder, ttl_ms, *question)
        return int(_granted(queue, await self._retry_if_dead(queue, ask)))

    async def available(self, queue: Queue, holder: str) -> None:
        """Check that `holder` could publish a message now, and reserve nothing.

        Raises QueueUnknown, QueuePaused, QueueFull, QueueReserved (by another holder), StoreFull and the like.
        """
        ask = partial(self._link.function, "available", list(queue.keys), holder)
        _granted(queue, await self._retry_if_dead(queue, ask))

    async def _retry_if_dead(self, queue: Queue, ask: Callable[[], Awaitable[Any]]) -> Any:
        """Return the reply. If a dead process of this machine has the reservation, release it and ask again."""
        reply = await ask()
        if not isinstance(reply, list) or reply[0] != b"RESERVED":
            return reply
        holder = reply[1].decode("utf-8", "replace")
        if not has_died(holder):
            return reply
        log.info("released a dead process's reservation", extra={"action": "claim_freed", "holder": holder})
        await self.release_reservation(queue, holder, fence=0)
        return await ask()

    async def release_reservation(self, queue: Queue, holder: str, fence: int, asker: str = "") -> bool:
        """Release the reservation if it is still the same one; return whether it was.

        asker: whose question was answered with it. fence: 0 where the reply with the token was lost, for a holder that
        reserved only once.
        """
        return bool(await self._function("release", [queue.keys[1]], holder, fence, asker))

    async def own(self, queue: Queue, owner: str, ttl_ms: int) -> int | None:
        """Take or renew the ownership of a queue; return the fencing token, None if it has another owner.

        A new owner, and one that renews too late, gets a higher token. An owner that cannot renew must stop in time:
        the store leases messages to any process. Raises QueueUnknown.
        """
        ask = partial(self._function, "own", [queue.keys[1]], owner, ttl_ms)
        fence = int(_granted(queue, await ask()))
        if not fence and await self._disown_dead(queue):
            fence = int(_granted(queue, await ask()))
        return fence or None

    async def _disown_dead(self, queue: Queue) -> bool:
        """End the ownership of a dead process of this machine; return False if the owner may be alive."""
        found = await self._link.call("HMGET", queue.keys[1], "own", "own_fence")
        owner = (found[0] or b"").decode("utf-8", "replace")
        if not has_died(owner):
            return False
        log.info("released a dead process's ownership", extra={"action": "claim_freed", "holder": owner})
        return await self.disown(queue, owner, int(found[1]))

    async def disown(self, queue: Queue, owner: str, fence: int) -> bool:
        """Give up the ownership, so that the next owner need not wait; return False if another one has it already."""
        return bool(await self._function("disown", [queue.keys[1]], owner, fence))

    async def check_unserved(self, queue: Queue) -> None:
        """Raise NameReserved for the queue of a running ring node: only the node may take its messages."""
        if not is_of_node(queue.name, queue.owner):
            return
        owner, until = await self._link.call("HMGET", queue.keys[1], "own", "own_until")
        if owner and int(until) > await self._link.now_ms():
            raise NameReserved(
                f"queue {queue.name!r}: its ring node is running; stop the node, then try again in a few seconds"
            )

    async def reclaim(self, queue: Queue, fence: int) -> int | None:
        """Return all leased messages to their places for a new owner; return how many.

        They do not count as failed; their holders find the leases lost. None: `fence` is a former owner's.
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
        """Set the queue's condition, an owner's text on what is wrong with it; '' clears it.

        errors: failed attempts to send since the last call, added to the queue's `send_errors`. Return False, and
        change nothing, if `fence` is a former owner's.
        """
        condition = text[:MAX_CONDITION].encode("utf-8", "replace")
        return bool(await self._function("set_condition", [queue.keys[1]], condition, fence, errors))


def _granted(queue: Queue, reply: Any) -> Any:
    """Return the reply, or raise it if it is a refusal."""
    if isinstance(reply, list):
        raise _claimed(queue, *reply)
    if isinstance(reply, bytes):
        raise QueueUnknown(f"there is no queue {queue.name!r}") if reply == b"GONE" else refusal(reply)
    return reply


def _claimed(queue: Queue, why: bytes, holder: bytes, left_ms: bytes = b"") -> StoreError:
    by = holder.decode("utf-8", "replace")
    if why == b"SERVED":
        return QueueServed(f"{by} has already answered this question with queue {queue.name!r}")
    return QueueReserved(f"queue {queue.name!r} is reserved by {by} for {int(left_ms) / 1000:.1f} s more")
