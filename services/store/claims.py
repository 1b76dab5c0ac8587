"""Claims on a queue, for a while: who alone may put messages in (reservations), who alone serves it (ownership)."""

from __future__ import annotations

from typing import Any

from services.store.errors import QueueReserved, QueueUnknown, StoreError, refusal
from services.store.link import Link
from services.store.queues import Queue

MAX_CONDITION = 500  # characters


class Claims:
    """What a domain's claims are kept by: `function` calls one of ours under the domain's epoch.

    Every method also raises StoreUnavailable, and OutcomeUnknown where an answer was lost: it may be asked again.
    """

    link: Link

    async def function(self, name: str, keys: list[str], *args: Any, attempts: int = 2) -> Any:
        raise NotImplementedError

    async def reserve(self, queue: Queue, holder: str, ttl_ms: int) -> int:
        """From now on `holder` alone may publish (with holder=...): a fence number, kept when it is renewed.

        A paused queue is given to nobody, but whoever has it may renew. Raises QueueReserved (its message says by whom,
        and for how long), QueuePaused, QueueUnknown;
        ValueError for a holder that is empty or begins with '?', which `publish` means something else by.
        """
        if not holder or holder.startswith("?"):
            raise ValueError(f"{holder!r} cannot hold a reservation: the name is empty, or begins with '?'")
        return int(self._granted(queue, await self.function("reserve", [queue.keys[1]], holder, ttl_ms)))

    async def available(self, queue: Queue, holder: str) -> None:
        """Returns if `holder` could put a message in now: nothing is reserved for it.

        Raises QueueUnknown, QueuePaused, QueueFull, QueueReserved (by somebody else), StoreFull and the like.
        """
        self._granted(queue, await self.link.function("available", list(queue.keys), holder))

    async def release_reservation(self, queue: Queue, holder: str, fence: int) -> bool:
        """Frees it, if it is still the same one."""
        return bool(await self.function("release", [queue.keys[1]], holder, fence))

    async def own(self, queue: Queue, owner: str, ttl_ms: int) -> int | None:
        """From now on `owner` alone serves the queue: a fence number, kept when it is renewed.

        None: somebody else owns it. Each new owner, and one that renews too late, gets a higher number. Whoever cannot
        renew must stop in time: the store leases messages to anybody. Raises QueueUnknown.
        """
        return int(self._granted(queue, await self.function("own", [queue.keys[1]], owner, ttl_ms))) or None

    async def disown(self, queue: Queue, owner: str, fence: int) -> bool:
        """The next one may own it at once. False: it was another's already."""
        return bool(await self.function("disown", [queue.keys[1]], owner, fence))

    async def set_condition(self, queue: Queue, text: str, fence: int, errors: int = 0) -> bool:
        """What is wrong with the queue, for whoever looks at it; '' = nothing. It stays until an owner says otherwise.

        errors: attempts to send that have failed since it was last told, added to the queue's `send_errors`.
        False: the fence number is an owner's of before, and nothing was changed.
        """
        said = text[:MAX_CONDITION].encode("utf-8", "replace")
        return bool(await self.function("set_condition", [queue.keys[1]], said, fence, errors))

    @staticmethod
    def _granted(queue: Queue, reply: Any) -> Any:
        """The reply, unless it is a refusal: then that is raised."""
        if isinstance(reply, list):
            raise _reserved(queue, *reply[1:])
        if isinstance(reply, bytes):
            raise _unknown(queue) if reply == b"GONE" else refusal(reply)
        return reply


def _reserved(queue: Queue, holder: bytes, left_ms: bytes) -> StoreError:
    by = holder.decode("utf-8", "replace")
    return QueueReserved(f"queue {queue.name!r} is reserved by {by} for {int(left_ms) / 1000:.1f} s more")


def _unknown(queue: Queue) -> StoreError:
    return QueueUnknown(f"there is no queue {queue.name!r}")
