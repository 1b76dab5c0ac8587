"""From a name to a connected TCP socket, or to words that say why there is none."""

from __future__ import annotations

import asyncio
import os
import socket

from services.kit.dns.lookup import ResolvedAddress, resolve
from services.kit.dns.socket_connect import Address, connect


async def open_tcp(host: str, port: int, timeout_s: float) -> tuple[socket.socket, str]:
    """A connected socket and the address at its other end.

    All addresses of the name are tried in turn, and each gets its share of the time that is left: one that never
    answers does not keep us from the next. Raises TimeoutError, other OSError, and UnicodeError for what is no name.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + timeout_s
    places = await _look_up(host, port, end, timeout_s)
    failures: dict[str, str] = {}
    for tried, (family, address) in enumerate(places):
        now = loop.time()
        share_s = max(end - now, 0.0) / (len(places) - tried)
        try:
            async with asyncio.timeout_at(now + share_s):
                return await _connected(family, address), address[0]
        except TimeoutError:
            failures[address[0]] = f"no answer within {timeout_s:g} s"
        except OSError as error:
            failures[address[0]] = os.strerror(error.errno) if error.errno else str(error)
    raise _failure(failures)


async def _look_up(host: str, port: int, end: float, timeout_s: float) -> list[ResolvedAddress]:
    try:
        async with asyncio.timeout_at(end):
            return await resolve(host, port)
    except TimeoutError:
        raise TimeoutError(f"the name was not looked up within {timeout_s:g} s") from None
    except socket.gaierror as error:
        raise OSError(f"the name cannot be looked up: {error.strerror}") from None


async def _connected(family: int, address: Address) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        await connect(sock, address)
    except BaseException:
        sock.close()
        raise
    return sock


def _failure(failures: dict[str, str]) -> OSError:
    """failures: what was wrong with each address."""
    texts = set(failures.values())
    text = texts.pop() if len(texts) == 1 else "; ".join(f"{at}: {why}" for at, why in failures.items())
    return TimeoutError(text) if all("within" in why for why in failures.values()) else OSError(text)
