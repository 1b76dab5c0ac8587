"""Remember addresses that beacons of unlisted nodes came from: beacons are sent there as well (ring.md 3.4)."""

from __future__ import annotations

from collections.abc import Iterable

from services.ring.node.discovery.targets import Target
from services.ring.node.hosts import is_of_this_machine_alone

MOST = 64  # addresses remembered: forged senders must not make this node flood others


class RecentSenders:
    """Addresses that beacons came from recently.

    Only the source address that the network reports counts, never the content of the beacon.
    """

    def __init__(self, broadcast: Iterable[str], kept_s: float) -> None:
        """broadcast: addresses already reached. kept_s: how long an address is remembered."""
        self._reached_already = {is_of_this_machine_alone(host) for host in broadcast}
        self._kept_s = kept_s
        self._until: dict[str, float] = {}

    def heard(self, address: str, now: float) -> bool:
        """Note the source of a beacon; return whether it is new."""
        if is_of_this_machine_alone(address) in self._reached_already:
            return False
        is_new = self._until.get(address, now) <= now
        if is_new:
            self._forget(now)
            if len(self._until) >= MOST:
                return False
        self._until[address] = now + self._kept_s
        return is_new

    def all(self, now: float) -> tuple[Target, ...]:
        """Return the remembered addresses as targets."""
        self._forget(now)
        return tuple(Target(address, None) for address in self._until)

    def _forget(self, now: float) -> None:
        self._until = {address: until for address, until in self._until.items() if until > now}
