"""Allocate ports to sessions and attempts; after a timeout a port rests before it is reused (rqp_cast.md 1.2).

A port rests only for the peer and key that it served: late messages of theirs must not be taken for newer ones, while
others may use the port. Each use and rest is marked by an abstract Unix socket. The kernel gives its name only once and
frees it when the process dies, so all processes of this machine respect it.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from services.kit.net import EXHAUSTED_ERRNOS

BACKLOG = 16  # one connection is expected; those of other machines must not keep it out
MAX_RESTS = 1024  # of all ports; each costs a descriptor
# Another process has the port, the process has no descriptors left, or the machine does not have the address now.
NOT_NOW = EXHAUSTED_ERRNOS | {errno.EADDRINUSE, errno.EACCES, errno.EADDRNOTAVAIL}


class PeerKey(NamedTuple):
    """The peer and key whose messages a port receives."""

    peer: str
    key: int


ANY_PEER = PeerKey("", 0)  # not known until `Port.assign`


class Port:
    """A listening port, from `Ports.open` until `close`."""

    __slots__ = ("_is_listening", "_ports", "mark", "number", "peer_key", "sock")

    def __init__(
        self, ports: Ports, number: int, peer_key: PeerKey, sock: socket.socket, mark: socket.socket
    ) -> None:
        self._ports = ports
        self.number = number
        self.peer_key = peer_key
        self.sock = sock
        self.mark = mark
        self._is_listening = True

    def assign(self, peer_key: PeerKey) -> bool:
        """Assign the port to a peer. Return False, and change nothing, if the port rests for it."""
        return peer_key == self.peer_key or self._ports.assign(self, peer_key)

    def stop_listening(self) -> None:
        """Reset further connections; the port stays allocated."""
        if self._is_listening:
            self._is_listening = False
            self.sock.shutdown(socket.SHUT_RDWR)

    def close(self, rests: bool) -> None:
        """Free the port. rests: do not reuse it for the same peer for a while."""
        self._ports.give_back(self, rests)


class Ports:
    """The ports of a range on one address."""

    def __init__(self, host: str, numbers: range, rest_s: float) -> None:
        self._host = host
        self._rest_s = rest_s
        self._idle = dict.fromkeys(numbers)  # not open here; least recently used first
        self._resting: dict[int, dict[PeerKey, Port]] = {}
        self._timers: dict[Port, asyncio.TimerHandle] = {}
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.on_free: Callable[[], None] = lambda: None  # called when a port may be available again

    def has(self, count: int, peer_key: PeerKey = ANY_PEER) -> bool:
        """Return whether so many ports are free for this peer, as far as this process knows."""
        for number in self._idle:
            count -= not self._rests(number, peer_key)
            if count <= 0:
                return True
        return False

    def open(self, peer_key: PeerKey = ANY_PEER) -> Port | None:
        """Open a port; None if all are open, rest for this peer, or are not available."""
        if len(self._timers) >= MAX_RESTS:
            return None
        for number in self._candidates(peer_key):
            port = self._opened(number, peer_key)  # if it raises, the port stays idle
            del self._idle[number]
            if port is not None:
                return port
            self._idle[number] = None  # last in the order
        return None

    def assign(self, port: Port, peer_key: PeerKey) -> bool:
        """See `Port.assign`."""
        if self._rests(port.number, peer_key) or (mark := self._marked(port.number, peer_key)) is None:
            return False
        port.mark.close()
        port.peer_key, port.mark = peer_key, mark
        return True

    async def opened(
        self, retry_s: float, peer_key: PeerKey = ANY_PEER, on_wait: Callable[[], None] = lambda: None
    ) -> Port:
        """Wait for a port and open it. Every `retry_s` ports of other processes are retried and `on_wait` is called."""
        while (port := self.open(peer_key)) is None:
            freed = asyncio.get_running_loop().create_future()
            self._waiting.append(freed)
            try:
                async with asyncio.timeout(retry_s):
                    await freed
            except TimeoutError:
                on_wait()
            finally:
                if freed in self._waiting:
                    self._waiting.remove(freed)
        return port

    def give_back(self, port: Port, rests: bool) -> None:
        """See `Port.close`."""
        port.sock.close()
        self._idle[port.number] = None
        if rests:
            self._resting.setdefault(port.number, {})[port.peer_key] = port
            loop = asyncio.get_running_loop()
            self._timers[port] = loop.call_later(self._rest_s, self._rested, port)
            self._wake(len(self._waiting))  # others may have it
        else:
            self._freed(port)

    def close(self) -> None:
        """End all rests: the process ends."""
        for port, timer in self._timers.items():
            timer.cancel()
            port.mark.close()
        self._timers.clear()
        self._resting.clear()

    def _rested(self, port: Port) -> None:
        del self._timers[port]
        del self._resting[port.number][port.peer_key]
        self._freed(port)

    def _freed(self, port: Port) -> None:
        port.mark.close()
        self._wake(1)

    def _wake(self, count: int) -> None:
        while count and self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)
                count -= 1
        self.on_free()

    def _rests(self, number: int, peer_key: PeerKey) -> bool:
        return peer_key in self._resting.get(number, ())

    def _candidates(self, peer_key: PeerKey) -> Iterable[int]:
        """Return idle ports, first those without any rest: a late message to another peer's port costs a connection."""
        found = [number for number in self._idle if not self._rests(number, peer_key)]
        return sorted(found, key=lambda number: bool(self._resting.get(number)))

    def _opened(self, number: int, peer_key: PeerKey) -> Port | None:
        if (mark := self._marked(number, peer_key)) is None:
            return None
        try:
            return Port(self, number, peer_key, _listening(self._host, number), mark)
        except OSError as error:
            mark.close()
            if error.errno in NOT_NOW:
                return None
            raise

    def _marked(self, number: int, peer_key: PeerKey) -> socket.socket | None:
        """Mark the port as used; None if it rests for this peer in another process of this machine."""
        try:
            return _mark(f"penstock cast {self._host} {number} {peer_key.peer} {peer_key.key}")
        except OSError as error:
            if error.errno in NOT_NOW:
                return None
            raise


def _mark(name: str) -> socket.socket:
    """Return a socket whose name is unique on this machine until it is closed."""
    mark = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        mark.bind(f"\0{name}")
    except OSError:
        mark.close()
        raise
    return mark


def _listening(host: str, number: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, number))
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock
