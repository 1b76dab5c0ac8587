"""Connect to the node that sent an OPEN (ring.md 1.2, 3.1, 3.6)."""

from __future__ import annotations

import asyncio
import socket

from protos.ring import Dial, host_of
from services.kit.dns import resolve
from services.kit.net import Dialler, Network
from services.kit.session import SessionFactory
from services.ring.node.discovery.beacons import is_allowed


class NotAllowed(ConnectionError):
    """None of the node's addresses is in an allowed network.

    Without this check any sender of beacons could have us connect to any host.
    """


async def connect(
    dialler: Dialler, allow: tuple[Network, ...], where: Dial, factory: SessionFactory, timeout_s: float
) -> None:
    """Connect to the first of the node's addresses that answers.

    Raises OSError that says what failed, or NotAllowed.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + timeout_s
    try:
        async with asyncio.timeout_at(end):
            found = await _resolve(where)
    except TimeoutError:
        raise TimeoutError(f"the name was not resolved within {timeout_s:g} s") from None
    places = [place for place in found if is_allowed(place[0], allow)]
    if not places:
        raise NotAllowed(
            f"edges.ring.node.allow excludes all its addresses: {', '.join(address for address, _ in found)}"
        )
    for tried, (address, port) in enumerate(places):
        share_s = max(end - loop.time(), 0.0) / (len(places) - tried)
        try:
            async with asyncio.timeout(share_s):
                await dialler.connect(address, port, factory)
                return
        except OSError:  # includes TimeoutError
            if tried + 1 == len(places):
                raise


async def _resolve(where: Dial) -> list[tuple[str, int]]:
    """Return the node's addresses and ports; both host and service may be names. Raises OSError."""
    host, service = host_of(where.node).decode(), where.service.decode()
    try:
        port = int(service) if service.isdecimal() else socket.getservbyname(service, "tcp")
        found = await resolve(host, port)
    except (OSError, UnicodeError) as error:
        raise OSError(f"{host} port {service} cannot be resolved: {error}") from None
    return list(dict.fromkeys((str(address[0]), int(address[1])) for _, address in found))
