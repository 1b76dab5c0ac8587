"""Ports of sessions and attempts: open for one of them, then free again, or at rest (rqp_cast.md 1.2).

A port rests for whoever had it: nobody else's late message can be taken for another one's there, so others may have it.
What rests is marked by a socket of a name that the kernel gives only once, and takes back from whoever dies: so all
processes of this machine know of it. Two of them never listen on one port either: there the kernel decides.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from services.kit.net import EXHAUSTED_ERRNOS

BACKLOG = 16  # one connection is wanted; strangers must not keep it out
MAX_RESTS = 1024  # of all ports; each costs a descriptor
# Another process of this machine has it, nothing is left, or the machine does not have the address now.
NOT_NOW = EXHAUSTED_ERRNOS | {errno.EADDRINUSE, errno.EACCES, errno.EADDRNOTAVAIL}


class Whom(NamedTuple):
    """Whose messages come to a port: those of a peer for a key."""

    peer: str
    key: int


ANYBODY = Whom("", 0)  # not known yet: see `Port.assign`


class Port:
    """One that listens, from `Ports.open` until `close`."""

    __slots__ = ("_is_listening", "_ports", "mark", "number", "sock", "whom")

    def __init__(
        self, ports: Ports, number: int, whom: Whom, sock: socket.socket, mark: socket.socket
    ) -> None:
        self._ports = ports
        self.number = number
        self.whom = whom
        self.sock = sock
        self.mark = mark
        self._is_listening = True

    def assign(self, whom: Whom) -> bool:
        """It is known now whose messages come. False if it rests for this one; then it stays as it was."""
        return whom == self.whom or self._ports.assign(self, whom)

    def stop_listening(self) -> None:
        """Who knocks from now on is reset; the number stays ours."""
        if self._is_listening:
            self._is_listening = False
            self.sock.shutdown(socket.SHUT_RDWR)

    def close(self, rests: bool) -> None:
        """Nobody waits for a connection to it any more. rests: it is not used again for the same one for a while."""
        self._ports.give_back(self, rests)


class Ports:
    """The ports of a range, on one address."""

    def __init__(self, host: str, numbers: range, rest_s: float) -> None:
        self._host = host
        self._rest_s = rest_s
        self._idle = dict.fromkeys(numbers)  # not open here; the one that was used longest ago first
        self._resting: dict[int, dict[Whom, Port]] = {}
        self._timers: dict[Port, asyncio.TimerHandle] = {}
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.on_free: Callable[[], None] = lambda: None  # told each time that one may be had again

    def has(self, count: int, whom: Whom = ANYBODY) -> bool:
        """Whether so many are neither open nor at rest for this one, as far as this process knows."""
        for number in self._idle:
            count -= not self._rests(number, whom)
            if count <= 0:
                return True
        return False

    def open(self, whom: Whom = ANYBODY) -> Port | None:
        """A port that listens; None while all of the range are open, rest for this one, or cannot be had."""
        if len(self._timers) >= MAX_RESTS:
            return None
        for number in self._candidates(whom):
            port = self._opened(number, whom)  # raises: it stays idle
            del self._idle[number]
            if port is not None:
                return port
            self._idle[number] = None  # others come first the next time
        return None

    def assign(self, port: Port, whom: Whom) -> bool:
        if self._rests(port.number, whom) or (mark := self._marked(port.number, whom)) is None:
            return False
        port.mark.close()
        port.whom, port.mark = whom, mark
        return True

    async def opened(
        self, retry_s: float, whom: Whom = ANYBODY, on_wait: Callable[[], None] = lambda: None
    ) -> Port:
        """As `open`, once there is one; ports that other processes have are tried again after `retry_s`.

        on_wait: told each time that this has passed in vain.
        """
        while (port := self.open(whom)) is None:
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
        port.sock.close()
        self._idle[port.number] = None
        if rests:
            self._resting.setdefault(port.number, {})[port.whom] = port
            loop = asyncio.get_running_loop()
            self._timers[port] = loop.call_later(self._rest_s, self._rested, port)
            self._wake(len(self._waiting))  # others may have it
        else:
            self._freed(port)

    def close(self) -> None:
        """None rests any longer: the process ends."""
        for port, timer in self._timers.items():
            timer.cancel()
            port.mark.close()
        self._timers.clear()
        self._resting.clear()

    def _rested(self, port: Port) -> None:
        del self._timers[port]
        del self._resting[port.number][port.whom]
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

    def _rests(self, number: int, whom: Whom) -> bool:
        return whom in self._resting.get(number, ())

    def _candidates(self, whom: Whom) -> Iterable[int]:
        """Those that rest for nobody first: what is late at another one is closed, but it disturbs."""
        found = [number for number in self._idle if not self._rests(number, whom)]
        return sorted(found, key=lambda number: bool(self._resting.get(number)))

    def _opened(self, number: int, whom: Whom) -> Port | None:
        if (mark := self._marked(number, whom)) is None:
            return None
        try:
            return Port(self, number, whom, _listening(self._host, number), mark)
        except OSError as error:
            mark.close()
            if error.errno in NOT_NOW:
                return None
            raise

    def _marked(self, number: int, whom: Whom) -> socket.socket | None:
        """None if it rests for this one, in another process of this machine."""
        try:
            return _mark(f"penstock cast {self._host} {number} {whom.peer} {whom.key}")
        except OSError as error:
            if error.errno in NOT_NOW:
                return None
            raise


def _mark(name: str) -> socket.socket:
    """What nobody else of this machine has, until it is closed."""
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
