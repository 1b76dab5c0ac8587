"""Names of machines and the addresses behind them, looked up again and again: machines come and go."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from services.kit.dns import resolve
from services.kit.metrics import Metrics
from services.rqp.jobs import end, job

log = logging.getLogger(__name__)

LookUp = Callable[[str], Awaitable[list[str]]]  # the addresses of a name; raises OSError if there are none
AGAIN_S = 5.0  # a name that could not be looked up is tried again after this long
SLOW_S = 30.0  # a look-up without an answer is told; mostly the system has given it up before


async def look_up(name: str) -> list[str]:
    """All addresses of a name, as the system knows them. Raises OSError, UnicodeError."""
    found = await resolve(name, 0)
    return list(dict.fromkeys(str(address[0]) for _, address in found))


class Names:
    """Answers are good for `keep_s`. A name that cannot be looked up keeps the addresses that it had.

    Look-ups go on side by side, one of each name: one that hangs holds up nobody but who waits for this very name. It
    is not given up and repeated: the system's look-ups cannot be cancelled, and not many go on at once.
    `on_change`: who is told when one has found other addresses.
    """

    def __init__(self, look_up: LookUp, keep_s: float, metrics: Metrics) -> None:
        self.on_change: list[Callable[[], None]] = []
        self._look_up = look_up
        self._keep_s = keep_s
        self._metrics = metrics
        self._known: dict[str, tuple[str, ...]] = {}
        self._good_until: dict[str, float] = {}
        self._trouble: dict[str, str] = {}  # told once for each change of it
        self._under_way: dict[str, asyncio.Task[None]] = {}

    def known(self, name: str) -> tuple[str, ...]:
        """As it was last found; () if it never was. Looked up beside if it is time for that."""
        if is_address(name):
            return (name,)
        self._renewal(name)
        return self._known.get(name, ())

    async def addresses(self, name: str) -> tuple[str, ...]:
        """As it is now: waited for if it is time to look. () if the name has never been found."""
        if not is_address(name) and (renewal := self._renewal(name)) is not None:
            await asyncio.wait((renewal,))
        return self.known(name)

    async def close(self) -> None:
        for task in list(self._under_way.values()):
            await end(task)

    def _renewal(self, name: str) -> asyncio.Task[None] | None:
        """The look-up that is under way, begun if it is time for one; else None."""
        under_way = self._under_way.get(name)
        if under_way is None and self._now() >= self._good_until.get(name, 0.0):
            under_way = job(partial(self._renew, name), f"look-up of {name}", self._metrics)
            self._under_way[name] = under_way
            under_way.add_done_callback(lambda _: self._under_way.pop(name))
        return under_way

    async def _renew(self, name: str) -> None:
        slow = asyncio.get_running_loop().call_later(
            SLOW_S, self._tell, name, f"no answer within {SLOW_S:g} s"
        )
        try:
            found = await self._look_up(name)
        except (OSError, UnicodeError) as error:
            self._good_until[name] = self._now() + min(self._keep_s, AGAIN_S)
            self._tell(name, str(error))
            return
        finally:
            slow.cancel()
        self._good_until[name] = self._now() + self._keep_s
        self._trouble.pop(name, None)
        addresses = tuple(sorted(found))  # servers that take turns in order change nothing
        if addresses != self._known.get(name):
            self._known[name] = addresses
            for tell in self.on_change:
                tell()

    def _tell(self, name: str, trouble: str) -> None:
        if self._trouble.get(name) != trouble:
            self._trouble[name] = trouble
            fields = {"action": "name_not_found", "name_asked": name}
            log.warning("the name %s cannot be looked up: %s", name, trouble, extra=fields)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True
