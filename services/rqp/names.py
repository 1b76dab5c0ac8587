"""Names of machines and the addresses behind them, looked up again and again: machines come and go."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)

LookUp = Callable[[str], Awaitable[list[str]]]  # the addresses of a name; raises OSError if there are none
AGAIN_S = 5.0  # a name that could not be looked up is tried again after this long


async def look_up(name: str) -> list[str]:
    """All addresses of a name, as the system knows them. Raises OSError, UnicodeError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(name, None, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return list(dict.fromkeys(str(address[0]) for _, _, _, _, address in found))


class Names:
    """Answers are good for `keep_s`. A name that cannot be looked up keeps the addresses that it had."""

    def __init__(self, look_up: LookUp, keep_s: float) -> None:
        self._look_up = look_up
        self._keep_s = keep_s
        self._known: dict[str, tuple[str, ...]] = {}
        self._good_until: dict[str, float] = {}
        self._trouble: dict[str, str] = {}  # told once for each change of it

    async def addresses(self, name: str) -> tuple[str, ...]:
        """() if the name has never been found."""
        if is_address(name):
            return (name,)
        now = asyncio.get_running_loop().time()
        if now >= self._good_until.get(name, 0.0):
            await self._renew(name, now)
        return self._known.get(name, ())

    async def _renew(self, name: str, now: float) -> None:
        try:
            found = await self._look_up(name)
        except (OSError, UnicodeError) as error:
            self._good_until[name] = now + min(self._keep_s, AGAIN_S)
            self._tell(name, str(error))
        else:
            self._known[name] = tuple(sorted(found))  # servers that take turns in order change nothing
            self._good_until[name] = now + self._keep_s
            self._trouble.pop(name, None)

    def _tell(self, name: str, trouble: str) -> None:
        if self._trouble.get(name) != trouble:
            self._trouble[name] = trouble
            fields = {"action": "name_not_found", "name_asked": name}
            log.warning("the name %s cannot be looked up: %s", name, trouble, extra=fields)


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True
