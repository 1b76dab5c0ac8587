"""Bound the sessions of one address and of the port range (rqp_cast.md 1.2, 3.2).

Questions that find no free slot wait for one in order, so that a machine that sends more at once than it has slots
keeps its order and loses no time. The number of waiting questions and their time are bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from protos.rqp_cast import Unanswered
from services.rqp.cast.ports.ports import PeerKey, Port, Ports

MAX_WAITING = 64  # questions that wait for a slot
MAX_WAITING_OF_ADDRESS = 32  # of one address, which leaves room for others
TOO_MANY_SESSIONS = "too_many_sessions"  # of this address
RETRY_S = 0.25  # how often ports of other processes are retried


@dataclass(eq=False, slots=True)
class _Waiter:
    peer: str
    try_take: Callable[[], bool]  # takes what is waited for, if it is free
    served: asyncio.Event = field(default_factory=asyncio.Event)


class SessionSlots:
    """The slots of a process; times are of the loop's clock."""

    def __init__(self, per_address: int, ports: Ports) -> None:
        self._per_address = per_address
        self._ports = ports
        self._taken: Counter[str] = Counter()  # by address: sessions, and questions that may become sessions
        self._waiters: list[_Waiter] = []  # in order of arrival
        self._is_serving = False
        self._timer: asyncio.TimerHandle | None = None
        ports.on_free = self._changed

    @property
    def waiting(self) -> int:
        """How many questions wait."""
        return len(self._waiters)

    def refusal(self, peer_key: PeerKey) -> str | None:
        """Return why there is no slot and no room to wait for one; None if `take` should be tried."""
        if self._may_wait(peer_key.peer):
            return None
        if not self._ports.has(2, peer_key):
            return Unanswered.PORTS_USED_UP.value
        return TOO_MANY_SESSIONS if self._is_full(peer_key.peer) else None

    async def take(self, source: str, until: float) -> bool:
        """Take a slot of this address, to be given back by `leave`. Return whether there was one."""

        def try_take() -> bool:
            is_free = not self._is_full(source)
            self._taken[source] += is_free
            return is_free

        return await self._take(_Waiter(source, try_take), until, lambda: self.leave(source))

    def leave(self, source: str) -> None:
        """Give back a slot."""
        self._taken[source] -= 1
        if not self._taken[source]:
            del self._taken[source]  # bounded memory
        self._changed()

    async def ports(self, peer_key: PeerKey, until: float) -> tuple[Port, Port] | None:
        """Open the two ports of a session; return None if all are in use."""
        found: list[Port] = []

        def try_take() -> bool:
            found.extend(self._two(peer_key))
            return bool(found)

        def close() -> None:
            for port in found:
                port.close(rests=False)

        if not await self._take(_Waiter(peer_key.peer, try_take), until, close):
            return None
        first, second = found
        return first, second

    async def _take(self, waiter: _Waiter, until: float, give_back: Callable[[], None]) -> bool:
        """Return whether the waiter was served; earlier ones come first."""
        self._changed()
        if waiter.try_take():
            return True
        if not self._may_wait(waiter.peer):
            return False
        try:
            await self._wait(waiter, until)
        except asyncio.CancelledError:
            if waiter.served.is_set():
                give_back()
            raise
        return waiter.served.is_set() or waiter.try_take()

    async def _wait(self, waiter: _Waiter, until: float) -> None:
        self._waiters.append(waiter)
        self._retry_later()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(until):
                    await waiter.served.wait()
            self._changed()  # another process may have freed a port
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def _changed(self) -> None:
        """Serve waiters in order: something may be free."""
        if self._is_serving:  # called again as one of two ports was put back
            return
        self._is_serving = True
        try:
            for waiter in tuple(self._waiters):
                with contextlib.suppress(OSError):  # raised to the waiter when its time is up
                    if waiter.try_take():
                        self._waiters.remove(waiter)
                        waiter.served.set()
        finally:
            self._is_serving = False

    def _retry_later(self) -> None:
        """Try again after a while: other processes do not report the ports they free."""
        if self._timer is None and self._waiters:
            self._timer = asyncio.get_running_loop().call_later(RETRY_S, self._retry)

    def _retry(self) -> None:
        self._timer = None
        self._changed()
        self._retry_later()

    def _is_full(self, source: str) -> bool:
        return self._taken[source] >= self._per_address

    def _may_wait(self, source: str) -> bool:
        waiting = sum(waiter.peer == source for waiter in self._waiters)
        return self.waiting < MAX_WAITING and waiting < MAX_WAITING_OF_ADDRESS

    def _two(self, peer_key: PeerKey) -> tuple[Port, ...]:
        """Open two ports or none."""
        if not self._ports.has(2, peer_key) or (first := self._ports.open(peer_key)) is None:
            return ()
        second: Port | None = None
        try:
            second = self._ports.open(peer_key)
        finally:
            if second is None:
                first.close(rests=False)
        return () if second is None else (first, second)
