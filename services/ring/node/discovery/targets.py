"""Whom beacons go to beside broadcast addresses: those of the settings, and of Peers in the store (ring.md 3.4)."""

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

MOST = 2000  # each beacon goes to all of them; those of the settings count, and are never left out

Address = tuple[Any, ...]  # as `sendto` takes it


@dataclass(frozen=True, slots=True)
class Target:
    host: str
    port: int | None  # None: where beacons go

    def __str__(self) -> str:
        return self.host if self.port is None else f"{self.host} port {self.port}"

    def address(self, port: int) -> tuple[int, Address] | None:
        """The family and the address, if it is one: of a name that has to be looked up, None."""
        try:
            found = ipaddress.ip_address(self.host)
        except ValueError:
            return None
        if found.version == 4:
            return socket.AF_INET, (self.host, port)
        return None if "%" in self.host else (socket.AF_INET6, (self.host, port, 0, 0))


class Targets:
    """`all`: each once. `follow` changes them."""

    def __init__(self, said: Iterable[str], host: str) -> None:
        """said: as in the settings. host: what others connect to who hear of this node."""
        self._said = tuple(dict.fromkeys(Target(*parse_target(text)) for text in said))
        self._is_local = is_of_this_machine_alone(host)
        self._left_out: frozenset[Target] = frozenset()  # told once
        self.all = self._said

    def follow(self, addresses: Iterable[str]) -> tuple[Target, ...]:
        """These peers' addresses beside those of the settings; answers the targets that are new."""
        wanted = dict.fromkeys((*self._said, *(Target(*split_address(text)) for text in addresses)))
        reached = [target for target in wanted if target in self._said or not self.misleads(target)]
        before, self.all = frozenset(self.all), tuple(reached[: max(MOST, len(self._said))])
        self._tell_left_out(frozenset(wanted).difference(self.all), len(reached) > len(self.all))
        return tuple(target for target in self.all if target not in before)

    def misleads(self, target: Target) -> bool:
        """They would look for this node at its loopback address, on their own machine."""
        return self._is_local and is_of_others(target.host)

    def _tell_left_out(self, left_out: frozenset[Target], are_too_many: bool) -> None:
        fresh, self._left_out = left_out - self._left_out, left_out
        if not fresh:
            return
        why = (
            f"beacons go to {MOST} targets at most"
            if are_too_many
            else "others would look for this node on their own machines: say edges.ring.node.advertise"
        )
        some = ", ".join(sorted(map(str, fresh))[:3])
        fields = {"action": "beacon_targets_left_out", "count": len(fresh)}
        log.warning("no beacons go to %d ring peers (%s, ...): %s", len(fresh), some, why, extra=fields)
