"""Send beacons to broadcast addresses and to targets, resolving their names each time (ring.md 3)."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable

from protos.ring import Beacon, Open, encode_beacon
from protos.types import LocalError
from services.kit.dns import resolve
from services.kit.net import plain_address
from services.ring import measures
from services.ring.node.discovery.recent_senders import RecentSenders
from services.ring.node.discovery.targets import Address, Target, Targets
from services.ring.node.node_metrics import NodeMetrics
from services.ring.node.settings import NodeSettings

log = logging.getLogger(__name__)

BATCH = 64  # targets in a row, before other work gets a turn
ADDRESSES = 256  # used of one name

Sent = Callable[[Beacon], None]
SocketOf = Callable[[int], socket.socket]


class BeaconSender:
    """The outgoing beacons of one node."""

    def __init__(
        self, settings: NodeSettings, host: str, metrics: NodeMetrics, sent: Sent, socket_of: SocketOf
    ) -> None:
        """sent: told of each datagram that is sent, or may have been.

        socket_of: returns the socket of an address family to send from.
        """
        self.port = settings.beacon_port  # once open, never 0
        self.targets = Targets(settings.beacon_targets, host)
        self.recent_senders = RecentSenders(settings.broadcast, settings.times.confirm_s)
        self.found: dict[Target, frozenset[str]] = {}  # resolved names of targets
        self._settings = settings
        self._metrics = metrics
        self._sent = sent
        self._socket_of = socket_of
        self._loop = asyncio.get_running_loop()
        self._lookups: dict[Target, asyncio.Task[None]] = {}
        self._trouble: dict[Address, set[str]] = {}  # errors logged since the last success
        self._is_closed = False

    def close(self) -> None:
        """Cancel the lookups: nothing is sent any more."""
        self._is_closed = True
        for task in self._lookups.values():
            task.cancel()

    def follow(self, addresses: Iterable[str]) -> tuple[Target, ...]:
        """Send beacons to these peers, too, from now on (3.4); return the targets that are new."""
        fresh = self.targets.follow(addresses)
        self.found = {target: found for target, found in self.found.items() if target in self.targets.all}
        hosts = {*self._settings.broadcast, *(target.host for target in self.targets.all)}
        self._trouble = {address: errors for address, errors in self._trouble.items() if address[0] in hosts}
        return fresh

    def met(self, address: str) -> tuple[Target, ...]:
        """Note that a node of our group sent a beacon from `address`; return its target if it is new (3.4)."""
        sender = Target(address, None)
        is_new = self.recent_senders.heard(address, self._loop.time())
        return (sender,) if is_new and self._needs_unicast(sender) else ()

    def _needs_unicast(self, sender: Target) -> bool:
        known = any(sender.host in (target.host, *self.found.get(target, ())) for target in self.targets.all)
        return not known and not self.targets.misleads(sender)

    def send(self, beacon: Beacon) -> None:
        """Send a beacon to all addresses. Failures are counted, and logged once per address and error."""
        data = self._encoded(beacon)
        if data is None:
            return
        ports = self._ports(beacon)
        self._metrics.count(measures.BEACONS_SENT, "open" if isinstance(beacon, Open) else "find")
        for host in self._settings.broadcast:
            for port in ports:
                self._send(beacon, data, socket.AF_INET, (host, port))
        recent_senders = filter(self._needs_unicast, self.recent_senders.all(self._loop.time()))
        self._send_to((*self.targets.all, *recent_senders), beacon, data, ports)

    def _encoded(self, beacon: Beacon) -> bytes | None:
        try:
            return encode_beacon(beacon)
        except LocalError as error:  # with a long leader's name ours may not fit
            self._unsent(("",), str(error))
            return None

    def _ports(self, beacon: Beacon) -> list[int]:
        settings = self._settings
        older = settings.older_open_port if isinstance(beacon, Open) else settings.older_find_port
        return [self.port, older] if older else [self.port]

    def send_to(self, targets: tuple[Target, ...], beacon: Beacon) -> None:
        """Send a beacon to these targets only."""
        data = self._encoded(beacon)
        if data is not None:
            self._send_to(targets, beacon, data, self._ports(beacon))

    def _send_to(self, targets: tuple[Target, ...], beacon: Beacon, data: bytes, ports: list[int]) -> None:
        """Send in batches, as there may be thousands of targets."""
        if self._is_closed:
            return
        for target in targets[:BATCH]:
            self._send_to_target(target, beacon, data, ports if target.port is None else [target.port])
        if len(targets) > BATCH:
            self._loop.call_soon(self._send_to, targets[BATCH:], beacon, data, ports)

    def _send_to_target(self, target: Target, beacon: Beacon, data: bytes, ports: list[int]) -> None:
        """Send to an address, or resolve the name first: machines move. One lookup per target at a time."""
        if target.address(0) is not None:
            for port in ports:
                if (found := target.address(port)) is not None:
                    self._send(beacon, data, *found)
            return
        if target in self._lookups:
            self._unsent((target.host,), "the previous lookup of its name is still running")
            return
        sending = self._resolve_and_send(beacon, data, target, ports)
        task = self._loop.create_task(sending, name=f"beacon to {target}")
        self._lookups[target] = task
        task.add_done_callback(lambda _: self._lookups.pop(target, None))

    async def _resolve_and_send(self, beacon: Beacon, data: bytes, target: Target, ports: list[int]) -> None:
        host = target.host
        try:
            found = await resolve(host, ports[0])
        except (OSError, UnicodeError) as error:
            self._unsent((host,), f"its name cannot be resolved: {error}")
            return
        self._trouble.pop((host,), None)
        self.found[target] = frozenset(plain_address(address[0]) for _, address in found)
        for family, address in found[:ADDRESSES]:
            for port in ports:
                self._send(beacon, data, family, (address[0], port, *address[2:]))

    def _send(self, beacon: Beacon, data: bytes, family: int, address: Address) -> None:
        self._sent(beacon)
        try:
            self._socket_of(family).sendto(data, address)
        except OSError as error:
            self._unsent(address, error.strerror or str(error))
        else:
            self._trouble.pop(address, None)

    def _unsent(self, address: Address, why: str) -> None:
        self._metrics.count(measures.BEACONS_UNSENT)
        logged = self._trouble.setdefault(address, set())
        if why not in logged:
            logged.add(why)
            fields = {"action": "beacon_unsent", "to": str(address[0]), "detail": why}
            text = "beacon to %s not sent from %s: %s; check edges.ring.node.beacon_host"
            log.warning(text, address[0], self._settings.beacon_host, why, extra=fields)
