"""The unicast targets of beacons: those of the settings, and of Peers in the store (ring.md 3.4)."""

from __future__ import annotations

import ipaddress
import logging
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from services.ring.node.hosts import is_of_others, is_of_this_machine_alone
from services.ring.node.settings import parse_target
from services.store.model import split_address

log = logging.getLogger(__name__)

MOST = 2000  # targets of each beacon; those of the settings count, and are never left out

Address = tuple[Any, ...]  # as `sendto` takes it


@dataclass(frozen=True, slots=True)
class Target:
    """A host that beacons are sent to."""

    host: str
    port: int | None  # None: the beacon port

    def __str__(self) -> str:
        return self.host if self.port is None else f"{self.host} port {self.port}"

    def address(self, port: int) -> tuple[int, Address] | None:
        """Return the address family and socket address, or None for a name that has to be resolved."""
        try:
            found = ipaddress.ip_address(self.host)
        except ValueError:
            return None
        if found.version == 4:
            return socket.AF_INET, (self.host, port)
        return None if "%" in self.host else (socket.AF_INET6, (self.host, port, 0, 0))


class Targets:
    """All targets, each once, in `all`."""

    def __init__(self, configured: Iterable[str], host: str) -> None:
        """Start with the `configured` targets. host: what others connect to when they hear of this node."""
        self._configured = tuple(dict.fromkeys(Target(*parse_target(text)) for text in configured))
        self._is_local = is_of_this_machine_alone(host)
        self._left_out: frozenset[Target] = frozenset()  # logged once
        self.all = self._configured

    def follow(self, addresses: Iterable[str]) -> tuple[Target, ...]:
        """Replace the peers' addresses, keep those of the settings; return the new targets."""
        wanted = dict.fromkeys((*self._configured, *(Target(*split_address(text)) for text in addresses)))
        reached = [target for target in wanted if target in self._configured or not self.misleads(target)]
        before, self.all = frozenset(self.all), tuple(reached[: max(MOST, len(self._configured))])
        self._log_left_out(frozenset(wanted).difference(self.all), len(reached) > len(self.all))
        return tuple(target for target in self.all if target not in before)

    def misleads(self, target: Target) -> bool:
        """Return whether the target would look for this node on its own machine, at a loopback address."""
        return self._is_local and is_of_others(target.host)

    def _log_left_out(self, left_out: frozenset[Target], are_too_many: bool) -> None:
        fresh, self._left_out = left_out - self._left_out, left_out
        if not fresh:
            return
        why = (
            f"at most {MOST} targets are allowed"
            if are_too_many
            else "others would look for this node on their own machines: set edges.ring.node.advertise"
        )
        some = ", ".join(sorted(map(str, fresh))[:3])
        fields = {"action": "beacon_targets_left_out", "count": len(fresh)}
        log.warning("%d ring peers get no beacons (%s, ...): %s", len(fresh), some, why, extra=fields)
