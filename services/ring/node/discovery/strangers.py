"""Nodes that have this one among their targets, and are not among its own: they are answered (ring.md 3.4)."""

from __future__ import annotations

from collections.abc import Iterable

from services.ring.node.discovery.targets import Target
from services.ring.node.hosts import is_of_this_machine_alone

MOST = 64  # more of them are not answered, or a flood of forged senders would make us one


class Strangers:
    """Addresses that beacons came from lately. Nothing that a beacon says counts, only who the network says sent it."""

    def __init__(self, broadcast: Iterable[str], kept_s: float) -> None:
        """broadcast: where it reaches, everybody is told already. kept_s: for which one that was heard is answered."""
        self._told_already = {is_of_this_machine_alone(host) for host in broadcast}
        self._kept_s = kept_s
        self._until: dict[str, float] = {}

    def heard(self, address: str, now: float) -> bool:
        """True if it is one that was not answered until now."""
        if is_of_this_machine_alone(address) in self._told_already:
            return False
        is_new = self._until.get(address, now) <= now
        if is_new:
            self._forget(now)
            if len(self._until) >= MOST:
                return False
        self._until[address] = now + self._kept_s
        return is_new

    def all(self, now: float) -> tuple[Target, ...]:
        self._forget(now)
        return tuple(Target(address, None) for address in self._until)

    def _forget(self, now: float) -> None:
        self._until = {address: until for address, until in self._until.items() if until > now}
