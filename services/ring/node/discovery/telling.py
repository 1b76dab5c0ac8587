"""Beacons on their way out: to broadcast addresses and to targets, whose names are looked up each time (ring.md 3)."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable

from protos.ring import Beacon, Open, encode_beacon
from protos.types import LocalError
from services.kit.dns import resolve
from services.kit.net import plain_address
from services.ring.node.discovery.strangers import Strangers
from services.ring.node.discovery.targets import Address, Target, Targets
from services.ring.node.figures import Figures
from services.ring.node.settings import NodeSettings

log = logging.getLogger(__name__)

BATCH = 64  # targets in a row, before others get a turn
ADDRESSES = 256  # that one name may have; the others are not sent to

Sent = Callable[[Beacon], None]
Sender = Callable[[int], socket.socket]


class Telling:
    """Those of one node."""

    def __init__(
        self, settings: NodeSettings, host: str, figures: Figures, sent: Sent, sender: Sender
    ) -> None:
        """sent: told of each datagram that goes out, or may have. sender: which socket of a family they leave from."""
        self.port = settings.beacon_port  # once open, never 0
        self.targets = Targets(settings.beacon_targets, host)
        self.strangers = Strangers(settings.broadcast, settings.times.confirm_s)
        self.found: dict[Target, frozenset[str]] = {}  # what the names of targets mean
        self._settings = settings
        self._figures = figures
        self._sent = sent
        self._sender = sender
        self._loop = asyncio.get_running_loop()
        self._look_ups: dict[Target, asyncio.Task[None]] = {}
        self._trouble: dict[Address, set[str]] = {}  # what was told of it since it went well
        self._is_closed = False

    def close(self) -> None:
        self._is_closed = True
        for task in self._look_ups.values():
            task.cancel()

    def follow(self, addresses: Iterable[str]) -> tuple[Target, ...]:
        """They go to these peers, too, from now on (3.4); answers the targets that are new."""
        fresh = self.targets.follow(addresses)
        self.found = {target: found for target, found in self.found.items() if target in self.targets.all}
        hosts = {*self._settings.broadcast, *(target.host for target in self.targets.all)}
        self._trouble = {address: told for address, told in self._trouble.items() if address[0] in hosts}
        return fresh

    def met(self, address: str) -> tuple[Target, ...]:
        """A node of our group sent a beacon from there; answers the target that is new, if it is one (3.4)."""
        stranger = Target(address, None)
        is_new = self.strangers.heard(address, self._loop.time())
        return (stranger,) if is_new and self._is_to_be_answered(stranger) else ()

    def _is_to_be_answered(self, stranger: Target) -> bool:
        known = any(
            stranger.host in (target.host, *self.found.get(target, ())) for target in self.targets.all
        )
        return not known and not self.targets.misleads(stranger)

    def send(self, beacon: Beacon) -> None:
        """To everybody. What cannot be sent is counted, and told in the log once."""
        data = self._encoded(beacon)
        if data is None:
            return
        ports = self._ports(beacon)
        self._figures.beacon_sent("open" if isinstance(beacon, Open) else "find")
        for host in self._settings.broadcast:
            for port in ports:
                self._send(beacon, data, socket.AF_INET, (host, port))
        strangers = filter(self._is_to_be_answered, self.strangers.all(self._loop.time()))
        self._send_to((*self.targets.all, *strangers), beacon, data, ports)

    def _encoded(self, beacon: Beacon) -> bytes | None:
        try:
            return encode_beacon(beacon)
        except LocalError as error:  # a leader's name may leave no room for ours
            self._unsent(("",), str(error))
            return None

    def _ports(self, beacon: Beacon) -> list[int]:
        settings = self._settings
        older = settings.older_open_port if isinstance(beacon, Open) else settings.older_find_port
        return [self.port, older] if older else [self.port]

    def send_to(self, targets: tuple[Target, ...], beacon: Beacon) -> None:
        """To these alone, which nobody has told before."""
        data = self._encoded(beacon)
        if data is not None:
            self._send_to(targets, beacon, data, self._ports(beacon))

    def _send_to(self, targets: tuple[Target, ...], beacon: Beacon, data: bytes, ports: list[int]) -> None:
        """There may be thousands: others get their turns meanwhile."""
        if self._is_closed:
            return
        for target in targets[:BATCH]:
            self._send_to_target(target, beacon, data, ports if target.port is None else [target.port])
        if len(targets) > BATCH:
            self._loop.call_soon(self._send_to, targets[BATCH:], beacon, data, ports)

    def _send_to_target(self, target: Target, beacon: Beacon, data: bytes, ports: list[int]) -> None:
        """Names are looked up each time: machines come and go. One look-up for a target at a time."""
        if target.address(0) is not None:
            for port in ports:
                if (found := target.address(port)) is not None:
                    self._send(beacon, data, *found)
            return
        if target in self._look_ups:
            self._unsent((target.host,), "its name is still being looked up")
            return
        sending = self._look_up_and_send(beacon, data, target, ports)
        task = self._loop.create_task(sending, name=f"beacon to {target}")
        self._look_ups[target] = task
        task.add_done_callback(lambda _: self._look_ups.pop(target, None))

    async def _look_up_and_send(self, beacon: Beacon, data: bytes, target: Target, ports: list[int]) -> None:
        host = target.host
        try:
            found = await resolve(host, ports[0])
        except (OSError, UnicodeError) as error:
            self._unsent((host,), f"its name cannot be looked up: {error}")
            return
        self._trouble.pop((host,), None)
        self.found[target] = frozenset(plain_address(address[0]) for _, address in found)
        for family, address in found[:ADDRESSES]:
            for port in ports:
                self._send(beacon, data, family, (address[0], port, *address[2:]))

    def _send(self, beacon: Beacon, data: bytes, family: int, address: Address) -> None:
        self._sent(beacon)
        try:
            self._sender(family).sendto(data, address)
        except OSError as error:
            self._unsent(address, error.strerror or str(error))
        else:
            self._trouble.pop(address, None)

    def _unsent(self, address: Address, why: str) -> None:
        self._figures.beacon_unsent()
        told = self._trouble.setdefault(address, set())
        if why not in told:
            told.add(why)
            fields = {"action": "beacon_unsent", "to": str(address[0]), "detail": why}
            text = "a beacon cannot be sent to %s from %s: %s; see edges.ring.node.beacon_host"
            log.warning(text, address[0], self._settings.beacon_host, why, extra=fields)
