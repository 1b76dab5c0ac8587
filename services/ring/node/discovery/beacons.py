"""The datagrams by which nodes find each other (ring.md 3): the sockets that hear them, and say them.

Several nodes of one machine share the port (SO_REUSEADDR): a broadcast reaches every socket that is bound to the
broadcast address, a datagram to one address only the socket that was bound last.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import logging
import socket
from collections.abc import Callable

from protos.ring import MAX_BEACON, Beacon, Open, parse_beacon
from protos.types import PeerError
from services.kit.config import SettingsError
from services.kit.net import Network, Throttle, plain_address
from services.ring.node.discovery.targets import Address
from services.ring.node.discovery.telling import Sent, Telling
from services.ring.node.figures import Figures
from services.ring.node.settings import NodeSettings

log = logging.getLogger(__name__)

IP_FREEBIND = 15  # of Linux: an address that no network has yet may be bound
BROADCAST = "edges.ring.node.broadcast to what `ip address` shows"

BATCH = 64  # datagrams read in a row from one socket, before others get a turn
ANY_4, ANY_6 = "0.0.0.0", "::"

Heard = Callable[[Beacon, str], str | None]  # and the address that it came from; why it was ignored, or None


class Beacons:
    """Those of one node. `telling` sends them."""

    def __init__(self, settings: NodeSettings, host: str, figures: Figures, heard: Heard, sent: Sent) -> None:
        """host: what others connect to. sent: as of `Telling`."""
        self.telling = Telling(settings, host, figures, sent, self._sender)
        self._settings = settings
        self._figures = figures
        self._loop = asyncio.get_running_loop()
        self._heard = heard
        self._sockets: list[socket.socket] = []
        self._senders: dict[int, socket.socket] = {}  # by family
        self._throttle = Throttle(burst=1, window_s=60.0)

    def open(self) -> None:
        """Hears from now on. Raises SettingsError that says what to do if an address cannot be had."""
        try:
            for host in self._hosts():
                self._open(host, self.telling.port)
                for port in self._older_ports():
                    self._open(host, port)
        except SettingsError:
            self.close()
            raise
        for sock in self._sockets:
            self._loop.add_reader(sock, self._read, sock)
        host, setting = self._settings.beacon_host, ("edges", "ring", "node", "beacon_port")
        fields = {"action": "beacons_listening", "host": host, "port": self.telling.port, "setting": setting}
        log.info("beacons on %s port %d", host, self.telling.port, extra=fields)

    def close(self) -> None:
        self.telling.close()
        for sock in {*self._sockets, *self._senders.values()}:
            if sock.fileno() >= 0:
                self._loop.remove_reader(sock)
                sock.close()
        self._sockets.clear()
        self._senders.clear()

    def tick(self, now: float) -> None:
        """Tells how many refusals were not logged."""
        for reason, number in self._throttle.expired(now):
            fields = {"action": "beacons_refused_more", "reason": reason, "count": number}
            log.warning("%d more beacons refused: %s", number, reason, extra=fields)

    # saying

    def _sender(self, family: int) -> socket.socket:
        """The first of that family: it has our port, and our address if there is a certain one."""
        found = self._senders.get(family)
        if found is None:
            found = next((sock for sock in self._sockets if sock.family == family), None)
            self._senders[family] = found = found or _socket(family)
        return found

    # hearing

    def _hosts(self) -> list[str]:
        """What is bound: broadcasts come only to sockets that have their address, or none."""
        host = self._settings.beacon_host
        if host == ANY_6:
            return [ANY_6, ANY_4]
        return [ANY_4] if host == ANY_4 else [host, *self._settings.broadcast]

    def _older_ports(self) -> list[int]:
        older = {self._settings.older_open_port, self._settings.older_find_port}
        return sorted(older - {0, self.telling.port})

    def _open(self, host: str, port: int) -> None:
        sock = _socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        self._sockets.append(sock)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if host in self._settings.broadcast:
                _bind_broadcast(sock, (host, port))
            else:
                sock.bind((host, port))
        except OSError as error:
            why = f"{error.strerror}; {_advice(error)}"
            raise SettingsError([f"cannot hear beacons on {host} port {port}: {why}"]) from None
        if not port:
            self.telling.port = sock.getsockname()[1]

    def _read(self, sock: socket.socket) -> None:
        """At most BATCH: what is left has its turn in the loop's next round."""
        for _ in range(BATCH):
            try:
                data, address = sock.recvfrom(MAX_BEACON + 1)
            except BlockingIOError:
                return
            except OSError as error:
                log.debug("no datagram: %s", error, extra={"action": "beacon_unread"})
                return
            self._received(data, plain_address(address[0]))

    def _received(self, data: bytes, source: str) -> None:
        if not is_allowed(source, self._settings.allow):
            self._refuse("not_allowed", source, "")
            return
        try:
            beacon = parse_beacon(data)
        except PeerError as error:
            self._refuse(error.reason, source, error.detail)
            return
        ignored = self._heard(beacon, source)
        if ignored is None:
            self._figures.beacon_heard("open" if isinstance(beacon, Open) else "find")
        else:
            self._figures.beacon_ignored(ignored)

    def _refuse(self, reason: str, source: str, detail: str) -> None:
        """Anybody can send floods of them: of each kind one in a while is logged."""
        self._figures.beacon_refused(reason)
        if self._throttle.admit(reason, self._loop.time()):
            fields = {"action": "beacon_refused", "reason": reason, "peer": source, "detail": detail}
            log.warning("a beacon of %s refused: %s", source, reason, extra=fields)


def is_allowed(address: str, allow: tuple[Network, ...]) -> bool:
    """Whether an address is in one of the networks; without networks every one is."""
    if not allow:
        return True
    with contextlib.suppress(ValueError):
        parsed = ipaddress.ip_address(address)
        return any(parsed in network for network in allow)
    return False


def _bind_broadcast(sock: socket.socket, address: Address) -> None:
    """A network that is down now has no broadcast address until it is up again: then they are heard, too."""
    try:
        sock.bind(address)
    except OSError as error:
        if error.errno != errno.EADDRNOTAVAIL:
            raise
        sock.setsockopt(socket.SOL_IP, IP_FREEBIND, 1)
        sock.bind(address)
        text = "no network of this machine has the broadcast address %s now: beacons come once one has; or set %s"
        log.warning(text, address[0], BROADCAST, extra={"action": "broadcast_absent", "to": address[0]})


def _advice(error: OSError) -> str:
    """What the operator can do about an address that cannot be had."""
    if error.errno == errno.EADDRINUSE:
        return "another program has it: end that, or set edges.ring.node.beacon_port, the same on all nodes"
    if error.errno == errno.EADDRNOTAVAIL:
        return "set edges.ring.node.beacon_host to what this machine's networks have: see `ip address`"
    return "set edges.ring.node.beacon_host and beacon_port"


def _socket(family: int) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_DGRAM)
    sock.setblocking(False)
    if family == socket.AF_INET:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    else:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    return sock
