"""SessionSlots for sessions: two ports each, and so many of one address (rqp_cast.md 1.2, 3.2).

Whoever finds none waits for one, in its turn: a machine that has more to send at once than it has places keeps its
order, and loses no time. How many wait, and how long, is bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from protos.rqp_cast import Unanswered
from services.rqp.cast.ports.ports import PeerKey, Port, Ports

MAX_WAITING = 64  # questions that wait for a place
MAX_WAITING_OF_ADDRESS = 32  # of them, so that one machine leaves room for others
TOO_MANY_SESSIONS = "too_many_sessions"  # of this address
RETRY_S = 0.25  # after which ports that other processes had are tried again


@dataclass(eq=False, slots=True)
class _Waiter:
    peer: str
    look: Callable[[], bool]  # takes what is waited for, if it is there
    had: asyncio.Event = field(default_factory=asyncio.Event)


class SessionSlots:
    """Times are of the loop's clock."""

    def __init__(self, per_address: int, ports: Ports) -> None:
        self._per_address = per_address
        self._ports = ports
        self._taken: Counter[str] = Counter()  # by address: sessions, and questions that may become some
        self._line: list[_Waiter] = []  # in the order in which they came
        self._is_looking = False
        self._timer: asyncio.TimerHandle | None = None
        ports.on_free = self._changed

    @property
    def waiting(self) -> int:
        return len(self._line)

    def refusal(self, whom: PeerKey) -> str | None:
        """Why there is no place now, and nobody else may wait for one; None if `take` is to be tried."""
        if self._may_wait(whom.peer):
            return None
        if not self._ports.has(2, whom):
            return Unanswered.PORTS_USED_UP.value
        return TOO_MANY_SESSIONS if self._is_full(whom.peer) else None

    async def take(self, source: str, until: float) -> bool:
        """Whether there is a place of this address, which is to be left."""

        def look() -> bool:
            is_had = not self._is_full(source)
            self._taken[source] += is_had
            return is_had

        return await self._had(_Waiter(source, look), until, lambda: self.leave(source))

    def leave(self, source: str) -> None:
        self._taken[source] -= 1
        if not self._taken[source]:
            del self._taken[source]  # who has none is not remembered
        self._changed()

    async def ports(self, whom: PeerKey, until: float) -> tuple[Port, Port] | None:
        """Both of a session, which are to be closed; None if there are none."""
        found: list[Port] = []

        def look() -> bool:
            found.extend(self._two(whom))
            return bool(found)

        def close() -> None:
            for port in found:
                port.close(rests=False)

        if not await self._had(_Waiter(whom.peer, look), until, close):
            return None
        first, second = found
        return first, second

    async def _had(self, waiter: _Waiter, until: float, give_back: Callable[[], None]) -> bool:
        """Whether it found what it looks for: at once, if nobody who came before can use that."""
        self._changed()
        if waiter.look():
            return True
        if not self._may_wait(waiter.peer):
            return False
        try:
            await self._wait(waiter, until)
        except asyncio.CancelledError:
            if waiter.had.is_set():
                give_back()
            raise
        return waiter.had.is_set() or waiter.look()

    async def _wait(self, waiter: _Waiter, until: float) -> None:
        self._line.append(waiter)
        self._look_later()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(until):
                    await waiter.had.wait()
            self._changed()  # what another process freed meanwhile
        finally:
            if waiter in self._line:
                self._line.remove(waiter)

    def _changed(self) -> None:
        """Something is free: who waits looks again, in the order in which they came."""
        if self._is_looking:  # one of two ports was put back
            return
        self._is_looking = True
        try:
            for waiter in tuple(self._line):
                with contextlib.suppress(OSError):  # raised to whoever waits, when its time is up
                    if waiter.look():
                        self._line.remove(waiter)
                        waiter.had.set()
        finally:
            self._is_looking = False

    def _look_later(self) -> None:
        """Other processes of this machine do not tell what they free."""
        if self._timer is None and self._line:
            self._timer = asyncio.get_running_loop().call_later(RETRY_S, self._look_again)

    def _look_again(self) -> None:
        self._timer = None
        self._changed()
        self._look_later()

    def _is_full(self, source: str) -> bool:
        return self._taken[source] >= self._per_address

    def _may_wait(self, source: str) -> bool:
        ours = sum(waiter.peer == source for waiter in self._line)
        return self.waiting < MAX_WAITING and ours < MAX_WAITING_OF_ADDRESS

    def _two(self, whom: PeerKey) -> tuple[Port, ...]:
        """Or none."""
        if not self._ports.has(2, whom) or (first := self._ports.open(whom)) is None:
            return ()
        second: Port | None = None
        try:
            second = self._ports.open(whom)
        finally:
            if second is None:
                first.close(rests=False)
        return () if second is None else (first, second)
