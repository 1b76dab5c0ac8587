"""A listening socket that survives floods and a system without descriptors."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable

from services.kit.config.layers import SettingPath, SettingsError
from services.outside.url import mask_input

log = logging.getLogger(__name__)

ACCEPT_BATCH = 64  # connections accepted in a row, before others get a turn
EXHAUSTED_PAUSE_S = 0.2  # pause after the system had no descriptor or memory for one more connection
QUIET_S = 60.0  # between two log lines about that, where it comes and goes
EXHAUSTED_ERRNOS = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))

BACKLOG = 1024  # connections that wait to be accepted, where no setting says how many

Accepted = Callable[[socket.socket, str, int], None]  # the connection, the peer's address and port


def open_bound(host: str, port: int, reuse_port: bool = False) -> socket.socket:
    """A bound TCP socket; `::` takes IPv4 too. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuse_port:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind((host, port))
    except OSError:
        sock.close()
        raise
    return sock


class AddressInUse(SettingsError):
    """Another socket has the address."""


def open_listening(
    host: str, port: int, setting: SettingPath, backlog: int = BACKLOG, reuse_port: bool = False
) -> socket.socket:
    """Return a TCP socket that listens. `setting` names the port in errors. Raises SettingsError, AddressInUse.

    With SO_REUSEADDR several sockets may be bound to a port on which none listens yet, so only both calls together
    decide who has it.
    """
    try:
        sock = open_bound(host, port, reuse_port)
        try:
            sock.listen(backlog)
        except OSError:
            sock.close()
            raise
    except OSError as error:
        raise listen_error(host, port, setting, error) from None
    return sock


def listen_error(host: str, port: int, setting: SettingPath, error: OSError) -> SettingsError:
    """Return the error that says which address cannot be had, why, and which setting to change."""
    name = ".".join(setting)
    text = f"cannot listen on {mask_input(host)} port {port}: {error.strerror}"
    if error.errno == errno.EADDRINUSE:
        return AddressInUse(
            [f"{text}; another `penstock up` or `serve` may run there: end it, or change {name}"]
        )
    return SettingsError([f"{text}; change {name}, or the host beside it"])


class Acceptor:
    """Accepts on a listening socket and hands the connections on. Calls `on_accept` only from the loop."""

    def __init__(
        self,
        sock: socket.socket,
        on_accept: Accepted,
        on_exhausted: Callable[[], None] = lambda: None,
    ) -> None:
        """on_exhausted: called for each attempt that failed, to count it."""
        self._loop = asyncio.get_running_loop()
        self._on_accept = on_accept
        self._on_exhausted = on_exhausted
        self._failures = 0  # in a row
        self._told = False  # the log says that there are some
        self._quiet_until = 0.0  # by the loop's clock
        self._rest: asyncio.TimerHandle | None = None
        self._sock = sock
        self._watch()

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._sock.getsockname()[:2]
        return host, port

    def close(self) -> None:
        """Who has connected already is let in first: closing the socket would meet him with a reset."""
        self._loop.remove_reader(self._sock)
        while self._accept_batch():
            pass
        if self._rest is not None:  # from before, or without room for who has connected
            self._rest.cancel()
        self._sock.close()

    def _watch(self) -> None:
        self._rest = None
        self._loop.add_reader(self._sock, self._accept_batch)

    def _accept_batch(self) -> bool:
        """True if there may be more."""
        for _ in range(ACCEPT_BATCH):
            try:
                sock, address = self._sock.accept()
            except BlockingIOError:
                self._recovered()
                return False
            except OSError as error:
                # Others are one connection's own misfortune: it was reset while it waited (accept(2)).
                if error.errno in EXHAUSTED_ERRNOS:
                    self._exhausted(error)
                    return False
                continue
            self._on_accept(sock, address[0], address[1])
        return True

    def _recovered(self) -> None:
        """No connection waits any more."""
        if self._told:
            fields = {"action": "accept_resumed", "attempts": self._failures, **self._fields()}
            log.info("connections are accepted again", extra=fields)
        self._told, self._failures = False, 0

    def _fields(self) -> dict[str, object]:
        host, port = self.address
        return {"host": host, "port": port}

    def _exhausted(self, error: OSError) -> None:
        """Trying again at once would only burn the processor: those who wait stay in the backlog."""
        self._on_exhausted()
        self._failures += 1
        now = self._loop.time()
        if not self._told and now >= self._quiet_until:
            self._told, self._quiet_until = True, now + QUIET_S
            text = (
                "cannot accept connections: %s; clients wait until others leave; raise the limit (ulimit -n)"
            )
            log.error(text, error.strerror, extra={"action": "accept_failed", **self._fields()})
        self._loop.remove_reader(self._sock)
        if self._rest is not None:
            self._rest.cancel()
        self._rest = self._loop.call_later(EXHAUSTED_PAUSE_S, self._watch)
