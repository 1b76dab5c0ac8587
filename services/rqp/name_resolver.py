"""Resolve host names in the background, and again before their addresses go stale."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from services.kit.dns import resolve
from services.kit.metrics import Metrics
from services.rqp.jobs import start_job, stop_job

log = logging.getLogger(__name__)

# the addresses of a name; raises OSError for a name without addresses
LookUp = Callable[[str], Awaitable[list[str]]]
AGAIN_S = 5.0  # pause after a failed lookup
SLOW_S = 30.0  # a lookup without an answer is logged; mostly the system has given it up before


async def look_up(name: str) -> list[str]:
    """Return all addresses of a name from the system's resolver. Raises OSError, UnicodeError."""
    found = await resolve(name, 0)
    return list(dict.fromkeys(str(address[0]) for _, address in found))


class NameResolver:
    """A cache of addresses, each valid for `keep_s`. A name whose lookup fails keeps its last addresses.

    There is one lookup per name at a time, so a hanging one delays only callers that wait for that name. It is not
    abandoned and repeated: the system's lookups cannot be cancelled, and their number is limited. `on_change`: called
    when a name has other addresses.
    """

    def __init__(self, look_up: LookUp, keep_s: float, metrics: Metrics) -> None:
        self.on_change: list[Callable[[], None]] = []
        self._look_up = look_up
        self._keep_s = keep_s
        self._metrics = metrics
        self._known: dict[str, tuple[str, ...]] = {}
        self._valid_until: dict[str, float] = {}
        self._trouble: dict[str, str] = {}  # each change of it is logged once
        self._running: dict[str, asyncio.Task[None]] = {}
        self._now = asyncio.get_running_loop().time

    def known(self, name: str) -> tuple[str, ...]:
        """Return the last known addresses, () without any; start a lookup if they are stale."""
        if is_address(name):
            return (name,)
        self._renewal(name)
        return self._known.get(name, ())

    async def addresses(self, name: str) -> tuple[str, ...]:
        """Return the current addresses, after a lookup if they are stale; () if the name was never found."""
        if not is_address(name) and (renewal := self._renewal(name)) is not None:
            await asyncio.wait((renewal,))
        return self.known(name)

    async def close(self) -> None:
        """Cancel all lookups."""
        for task in list(self._running.values()):
            await stop_job(task)

    def _renewal(self, name: str) -> asyncio.Task[None] | None:
        """Return the running lookup, started if the addresses are stale; None if none is needed."""
        running = self._running.get(name)
        if running is None and self._now() >= self._valid_until.get(name, 0.0):
            running = start_job(partial(self._renew, name), f"lookup of {name}", self._metrics)
            self._running[name] = running
            running.add_done_callback(lambda _: self._running.pop(name))
        return running

    async def _renew(self, name: str) -> None:
        no_answer = f"no answer within {SLOW_S:g} s"
        slow = asyncio.get_running_loop().call_later(SLOW_S, self._warn, name, no_answer)
        try:
            found = await self._look_up(name)
        except (OSError, UnicodeError) as error:
            self._valid_until[name] = self._now() + min(self._keep_s, AGAIN_S)
            self._warn(name, str(error))
            return
        finally:
            slow.cancel()
        self._valid_until[name] = self._now() + self._keep_s
        self._trouble.pop(name, None)
        addresses = tuple(sorted(found))  # DNS servers that rotate the order change nothing
        if addresses != self._known.get(name):
            self._known[name] = addresses
            for notify in self.on_change:
                notify()

    def _warn(self, name: str, trouble: str) -> None:
        if self._trouble.get(name) != trouble:
            self._trouble[name] = trouble
            fields = {"action": "name_not_found", "name_asked": name}
            log.warning("cannot resolve the name %s: %s", name, trouble, extra=fields)


def is_address(name: str) -> bool:
    """Return whether `name` is an IPv4 or IPv6 address, with or without a zone."""
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True
