"""From an OPEN to a connection with the node that sent it (ring.md 1.2, 3.1, 3.6)."""

from __future__ import annotations

import asyncio
import socket

from protos.ring import Dial, host_of
from services.kit.dns import resolve
from services.kit.net import Dialler, Network
from services.kit.session import SessionFactory
from services.ring.node.discovery.beacons import is_allowed


class NotAllowed(ConnectionError):
    """The node's addresses are in none of the networks that are dialled: whoever sends beacons could else have us
    connect to anything."""


async def connect(
    dialler: Dialler, allow: tuple[Network, ...], where: Dial, factory: SessionFactory, timeout_s: float
) -> None:
    """Connects to the first of the node's addresses that answers. Raises OSError that says what failed, NotAllowed."""
    loop = asyncio.get_running_loop()
    end = loop.time() + timeout_s
    try:
        async with asyncio.timeout_at(end):
            found = await _look_up(where)
    except TimeoutError:
        raise TimeoutError(f"the name was not looked up within {timeout_s:g} s") from None
    places = [place for place in found if is_allowed(place[0], allow)]
    if not places:
        raise NotAllowed(
            f"none of its addresses may be dialled: {', '.join(address for address, _ in found)}"
        )
    for tried, (address, port) in enumerate(places):
        share_s = max(end - loop.time(), 0.0) / (len(places) - tried)
        try:
            async with asyncio.timeout(share_s):
                await dialler.connect(address, port, factory)
                return
        except OSError:  # a TimeoutError, too
            if tried + 1 == len(places):
                raise


async def _look_up(where: Dial) -> list[tuple[str, int]]:
    """Addresses and ports. The service may be a name, the node's host an address. Raises OSError."""
    host, service = host_of(where.node).decode(), where.service.decode()
    try:
        port = int(service) if service.isdecimal() else socket.getservbyname(service, "tcp")
        found = await resolve(host, port)
    except (OSError, UnicodeError) as error:
        raise OSError(f"{host} port {service} cannot be looked up: {error}") from None
    return list(dict.fromkeys((str(address[0]), int(address[1])) for _, address in found))
