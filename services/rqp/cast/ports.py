"""Ports of sessions and attempts: open for one of them, then free again, or at rest (rqp_cast.md 1.2)."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import deque

from services.kit.acceptor import EXHAUSTED

BACKLOG = 16  # one connection is wanted; strangers must not keep it out
NOT_NOW = EXHAUSTED | {
    errno.EADDRINUSE,
    errno.EACCES,
}  # another process of this machine has it, or nothing is left


class Port:
    """One that listens, from `Ports.open` until `close`."""

    __slots__ = ("_is_listening", "_ports", "number", "sock")

    def __init__(self, ports: Ports, sock: socket.socket, number: int) -> None:
        self._ports = ports
        self.sock = sock
        self.number = number
        self._is_listening = True

    def stop_listening(self) -> None:
        """Who knocks from now on is reset; the number stays ours."""
        if self._is_listening:
            self._is_listening = False
            self.sock.shutdown(socket.SHUT_RDWR)

    def close(self, rests: bool) -> None:
        """Nobody waits for a connection to it any more. rests: it is not used again for a while."""
        self._ports.give_back(self, rests)


class Ports:
    """The ports of a range, on one address. Each process of a machine has its own idea of them; the kernel decides."""

    def __init__(self, host: str, numbers: range, rest_s: float) -> None:
        self._host = host
        self._rest_s = rest_s
        self._free = deque(numbers)  # the one that was used longest ago first
        self._resting: dict[Port, asyncio.TimerHandle] = {}
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def free(self) -> int:
        """How many are neither open nor at rest here."""
        return len(self._free)

    def open(self) -> Port | None:
        """A port that listens; None while all of the range are open or rest."""
        for _ in range(len(self._free)):
            number = self._free.popleft()
            if (sock := self._listen(number)) is not None:
                return Port(self, sock, number)
            self._free.append(number)
        return None

    async def opened(self, retry_s: float) -> Port:
        """As `open`, once there is one; ports that other processes have are tried again after `retry_s`."""
        while (port := self.open()) is None:
            freed = asyncio.get_running_loop().create_future()
            self._waiting.append(freed)
            try:
                async with asyncio.timeout(retry_s):
                    await freed
            except TimeoutError:
                continue
            finally:
                if freed in self._waiting:
                    self._waiting.remove(freed)
        return port

    def give_back(self, port: Port, rests: bool) -> None:
        if not rests:
            port.sock.close()
            self._freed(port)
            return
        port.stop_listening()
        # Bound on, so that no other process gets it either: without this option their listen() fails.
        port.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        loop = asyncio.get_running_loop()
        self._resting[port] = loop.call_later(self._rest_s, self._rested, port)

    def close(self) -> None:
        """None rests any longer: the process ends."""
        for port, timer in self._resting.items():
            timer.cancel()
            port.sock.close()
        self._resting.clear()

    def _rested(self, port: Port) -> None:
        del self._resting[port]
        port.sock.close()
        self._freed(port)

    def _freed(self, port: Port) -> None:
        self._free.append(port.number)
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)
                return

    def _listen(self, number: int) -> socket.socket | None:
        try:
            return _listening(self._host, number)
        except OSError as error:
            if error.errno in NOT_NOW:
                return None
            raise


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
