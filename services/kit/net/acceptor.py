"""Accept connections; survive floods and a lack of file descriptors."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable

from services.kit.config.layers import SettingPath, SettingsError
from services.outside.url import mask_input

log = logging.getLogger(__name__)

ACCEPT_BATCH = 64  # connections accepted in a row, before the loop gets its turn
EXHAUSTED_PAUSE_S = 0.2  # pause after a lack of descriptors or memory
QUIET_S = 60.0  # minimum between two log lines about it
EXHAUSTED_ERRNOS = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))

BACKLOG = 1024  # connections waiting to be accepted, unless a setting says otherwise

Accepted = Callable[[socket.socket, str, int], None]  # the connection, the peer's address and port


def open_bound(host: str, port: int, reuse_port: bool = False) -> socket.socket:
    """Return a bound TCP socket; `::` accepts IPv4 too. Raises OSError."""
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
    """Another socket uses the address."""


def open_listening(
    host: str, port: int, setting: SettingPath, backlog: int = BACKLOG, reuse_port: bool = False
) -> socket.socket:
    """Return a listening TCP socket. `setting` names the port in errors. Raises SettingsError, AddressInUse.

    With SO_REUSEADDR several sockets may be bound to a port as long as none listens, so the port is taken only once
    both calls have succeeded.
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
    """Return an error that names the address, the cause and the setting to change."""
    name = ".".join(setting)
    text = f"cannot listen on {mask_input(host)} port {port}: {error.strerror}"
    if error.errno == errno.EADDRINUSE:
        return AddressInUse(
            [f"{text}; another `penstock up` or `serve` may use it: stop that, or change {name}"]
        )
    return SettingsError([f"{text}; change {name} or its host"])


class Acceptor:
    """Passes the connections of a listening socket to `on_accept`, which is called only from the loop."""

    def __init__(
        self,
        sock: socket.socket,
        on_accept: Accepted,
        on_exhausted: Callable[[], None] = lambda: None,
    ) -> None:
        """Start accepting. `on_exhausted` is called for each attempt that fails for lack of resources."""
        self._loop = asyncio.get_running_loop()
        self._on_accept = on_accept
        self._on_exhausted = on_exhausted
        self._failures = 0  # in a row
        self._is_failing = False  # as it was logged
        self._quiet_until = 0.0  # loop time
        self._rest: asyncio.TimerHandle | None = None
        self._sock = sock
        self._watch()

    @property
    def address(self) -> tuple[str, int]:
        """Return the bound host and port."""
        host, port = self._sock.getsockname()[:2]
        return host, port

    def close(self) -> None:
        """Accept the connections that wait, which closing would reset, and close the socket."""
        self._loop.remove_reader(self._sock)
        while self._accept_batch():
            pass
        if self._rest is not None:
            self._rest.cancel()
        self._sock.close()

    def _watch(self) -> None:
        self._rest = None
        self._loop.add_reader(self._sock, self._accept_batch)

    def _accept_batch(self) -> bool:
        """Return True if more connections may be waiting."""
        for _ in range(ACCEPT_BATCH):
            try:
                sock, address = self._sock.accept()
            except BlockingIOError:
                self._recovered()
                return False
            except OSError as error:
                # Other errors concern one connection, reset while it waited (accept(2)).
                if error.errno in EXHAUSTED_ERRNOS:
                    self._exhausted(error)
                    return False
                continue
            self._on_accept(sock, address[0], address[1])
        return True

    def _recovered(self) -> None:
        if self._is_failing:
            fields = {"action": "accept_resumed", "attempts": self._failures, **self._fields()}
            log.info("connections are accepted again", extra=fields)
        self._is_failing, self._failures = False, 0

    def _fields(self) -> dict[str, object]:
        host, port = self.address
        return {"host": host, "port": port}

    def _exhausted(self, error: OSError) -> None:
        """Pause accepting: retrying at once would only use up the processor. Clients wait in the backlog."""
        self._on_exhausted()
        self._failures += 1
        now = self._loop.time()
        if not self._is_failing and now >= self._quiet_until:
            self._is_failing, self._quiet_until = True, now + QUIET_S
            text = "cannot accept connections: %s; clients wait until others disconnect; raise the limit (ulimit -n)"
            log.error(text, error.strerror, extra={"action": "accept_failed", **self._fields()})
        self._loop.remove_reader(self._sock)
        if self._rest is not None:
            self._rest.cancel()
        self._rest = self._loop.call_later(EXHAUSTED_PAUSE_S, self._watch)
