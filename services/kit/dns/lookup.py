"""Resolve host names in threads: the system's resolver blocks, for half a minute if a name server is silent.

`loop.getaddrinfo` is not used because uvloop runs only two at a time, so that two hanging names block all others.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from dataclasses import dataclass, field
from threading import Lock, Thread

from services.kit.dns.socket_connect import Address

MAX_LOOKUPS = 64  # concurrent lookups, each in a thread
QUEUE_TIMEOUT_S = 3.0  # how long a name waits for a free thread before it fails

ResolvedAddress = tuple[int, Address]  # the family and the address
Answer = list[ResolvedAddress] | OSError


async def resolve(host: str, port: int) -> list[ResolvedAddress]:
    """Return the addresses of a name, or the address itself, without duplicates.

    Hanging names do not delay others, up to MAX_LOOKUPS of them. Raises OSError, and UnicodeError for an invalid name.
    """
    if "\0" in host:  # C would end the name there
        raise UnicodeError("the name contains a NUL")
    try:
        return _getaddrinfo(host, port, socket.AI_NUMERICHOST)
    except socket.gaierror:
        if ":" in host:  # an address with an unknown scope, not a name
            raise
    found = await _resolver.resolve(host.encode("idna"))
    return [(family, (address[0], port, *address[2:])) for family, address in found]


def _getaddrinfo(host: str | bytes, port: int, flags: int = 0) -> list[ResolvedAddress]:
    """Resolve by the system; blocks."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=flags)
    return list(dict.fromkeys((int(family), address) for family, _, _, _, address in found))


@dataclass(slots=True)
class _Lookup:
    """A pending lookup of one name, and the callers that wait for it."""

    has_begun: bool = False
    waiting: set[asyncio.Future[Answer]] = field(default_factory=set)


class NameResolver:
    """A resolver with at most `most` concurrent lookups; callers that ask for the same name share a lookup.

    Threads are never joined: neither by cancelled callers, nor by the process when it exits. May be used by several
    loops.
    """

    def __init__(self, most: int = MAX_LOOKUPS, queue_timeout_s: float = QUEUE_TIMEOUT_S) -> None:
        self._most = most
        self._queue_timeout_s = queue_timeout_s
        self._lock = Lock()  # protects all below
        self._lookups: dict[bytes, _Lookup] = {}  # by name, in order of arrival
        self._threads = 0

    async def resolve(self, name: bytes) -> list[ResolvedAddress]:
        """Return addresses with port 0. Raises OSError."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[Answer] = loop.create_future()
        with self._lock:
            lookup = self._lookup(name)
            lookup.waiting.add(waiter)
        refusal = loop.call_later(self._queue_timeout_s, self._give_up, lookup, waiter)
        try:
            answer = await waiter
        finally:
            refusal.cancel()
            with self._lock:
                self._leave(name, lookup, waiter)
        if isinstance(answer, OSError):
            raise type(answer)(*answer.args)  # a copy for each caller
        return answer

    def _lookup(self, name: bytes) -> _Lookup:
        """Return the lookup of the name; begin it if a thread is free."""
        lookup = self._lookups.get(name)
        if lookup is None:
            lookup = _Lookup()
            if self._threads < self._most:
                self._begin(name)
                lookup.has_begun = True
            self._lookups[name] = lookup
        return lookup

    def _begin(self, name: bytes) -> None:
        try:
            Thread(target=self._work, args=(name,), name="resolver", daemon=True).start()
        except RuntimeError as error:
            raise OSError(f"names cannot be resolved now: {error}") from None
        self._threads += 1

    def _give_up(self, lookup: _Lookup, waiter: asyncio.Future[Answer]) -> None:
        if not lookup.has_begun:
            waited = f"no lookup was possible within {self._queue_timeout_s:g} s"
            _settle(waiter, OSError(f"{waited}: {self._most} other names are being resolved"))

    def _leave(self, name: bytes, lookup: _Lookup, waiter: asyncio.Future[Answer]) -> None:
        lookup.waiting.discard(waiter)
        if not lookup.waiting and not lookup.has_begun:
            del self._lookups[name]

    def _work(self, name: bytes | None) -> None:
        """Resolve this name, and then those that wait, in a thread."""
        while name is not None:
            answer: Answer
            try:
                answer = _getaddrinfo(name, 0)
            except OSError as error:
                answer = error
            except Exception as error:  # noqa: BLE001 - the callers must get an answer
                answer = OSError(f"the name cannot be resolved: {error!r}")
            name = self._answered(name, answer)

    def _answered(self, name: bytes, answer: Answer) -> bytes | None:
        """Pass the answer to the callers. Return the next name to resolve, or None."""
        with self._lock:
            waiting = list(self._lookups.pop(name).waiting)
            following = next((n for n, lookup in self._lookups.items() if not lookup.has_begun), None)
            if following is None:
                self._threads -= 1
            else:
                self._lookups[following].has_begun = True
        for waiter in waiting:
            with contextlib.suppress(RuntimeError):  # its loop has been closed
                waiter.get_loop().call_soon_threadsafe(_settle, waiter, answer)
        return following


def _settle(waiter: asyncio.Future[Answer], answer: Answer) -> None:
    if not waiter.done():
        waiter.set_result(answer)


_resolver = NameResolver()
