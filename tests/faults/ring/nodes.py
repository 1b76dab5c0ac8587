"""A node of a ring, with its client port, on its own machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from protos.ring import BEACON_PORT, CLIENT_PORT, RING_PORT
from tests.faults.process import EdgeProcess
from tests.faults.ring.plan import GROUP, SILENCE_S
from tests.machines import BROADCAST, HOME, Machine

# short enough to expire during a test, long enough that a busy host does not look like a fault
STORE = {
    "session_timeout_s": 2.0,
    "heartbeat_s": 0.3,
    "sweep_s": 0.3,
    "patience_s": 1.0,
    "reply_timeout_s": 1.5,
    "call_deadline_s": 3.0,
}
TIMES = {
    "open_s": 0.5,
    "open_first_s": 0.2,
    "open_first_for_s": 2.0,
    "newcomer_s": 1.0,
    "alone_s": 5.0,
    "own_ring_s": 0.7,
    "self_s": 2.0,
    "propose_s": 2.0,
    "find_s": 0.5,
    "no_leader_s": 6.0,
    "ack_s": 1.5,
    "idle_s": 0.3,
    "silence_s": SILENCE_S,
}
RingStatus = dict[str, Any]  # document of the page /ring


class RingNode(EdgeProcess):
    """A node process. It exits unprompted only without a network; `supervise` restarts it, like systemd."""

    def __init__(self, name: str, directory: Path, store_url: str, machine: Machine) -> None:
        self.machine = machine
        self.gave_up = 0  # number of unprompted exits
        self._is_wanted = False
        settings = {
            "listeners": {
                "clients": {"host": machine.address, "port": CLIENT_PORT},
                "ring": {"host": machine.address, "port": RING_PORT},
            },
            "node": {
                "group": GROUP,
                "beacon_host": machine.address,
                "beacon_port": BEACON_PORT,
                "broadcast": [BROADCAST],
                "window": 16,
                "times": TIMES,
            },
            "store": STORE,
            "request_timeout_s": 6.0,
        }
        super().__init__(name.replace(" ", "-"), directory, store_url, "ring", settings, machine.address)

    @property
    def place(self) -> tuple[str, int]:
        """Address of the client port."""
        return self.machine.address, CLIENT_PORT

    @property
    def ring_name(self) -> str:
        return f"{self.machine.address}:{RING_PORT}"

    def command(self) -> list[str]:
        return self.machine.command(super().command())

    def spawn(self) -> None:
        super().spawn()
        self._is_wanted = True

    def kill9(self) -> None:
        self._is_wanted = False
        super().kill9()

    def terminate(self) -> None:
        self._is_wanted = False
        super().terminate()

    def supervise(self) -> None:
        """Restart the node after an unprompted exit; call this periodically."""
        if self._is_wanted and self.has_ended:
            self.gave_up += 1
            self.spawn()

    def status(self) -> RingStatus | None:
        """Return the page /ring, or None. Call it outside the event loop, as it blocks."""
        page = self.page("/ring")
        found: RingStatus | None = None if page is None else json.loads(page)
        return found


def store_options() -> dict[str, str]:
    """Return options of a server that machines reach; the network is isolated, so it needs no protection."""
    return {"bind": "0.0.0.0", "protected-mode": "no"}


def store_url(port: int) -> str:
    return f"redis://{HOME}:{port}"


def is_one_ring(statuses: list[RingStatus | None]) -> bool:
    """Return whether all nodes answered and form one ring with one leader that all of them follow."""
    nodes = [each for each in statuses if each is not None]
    following = {each["name"]: (each["successor"] or {}).get("name") for each in nodes}
    at, seen = nodes[0]["name"] if nodes else None, set()
    while at in following and at not in seen:
        seen.add(at)
        at = following[at]
    leaders = [each["name"] for each in nodes if each["is_leader"]]
    return (
        len(nodes) == len(statuses)
        and seen == following.keys()
        and at == nodes[0]["name"]
        and len(leaders) == 1
        and all(each["leader"] == leaders[0] and each["predecessor"] is not None for each in nodes)
    )
