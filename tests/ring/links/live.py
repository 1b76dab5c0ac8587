"""Nodes in the running loop: real sockets and a real store; USER messages are kept in lists."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Sequence
from typing import Any

from services.kit.config.layers import SettingsError
from services.kit.edge import Edge, EdgeContext
from services.ring.node.identity import identify
from services.ring.node.links.station import Station
from services.ring.node.member import Member
from services.ring.service import RingService
from services.ring.settings import RingSettings
from tests.live import Live
from tests.ring.links.carrier import Carrier

QUICK = {  # s: long enough for a busy machine
    "open_s": 0.3,
    "open_first_s": 0.1,
    "open_first_for_s": 1.0,
    "newcomer_s": 1.0,
    "alone_s": 5.0,
    "own_ring_s": 0.5,
    "self_s": 1.0,
    "vain_s": 2.5,
    "propose_s": 2.0,
    "find_s": 0.5,
    "no_leader_s": 5.0,
    "confirm_s": 2.5,
    "vacant_s": 1.0,
    "lost_s": 4.0,
    "absent_s": 10.0,
    "ack_s": 1.5,
    "idle_s": 0.3,
    "silence_s": 3.0,
}
BRISK = {"patience_s": 0.3, "reply_timeout_s": 0.5, "call_deadline_s": 1.0}
GROUP = 7


class RunningNode:
    def __init__(self, service: RingService, member: Member, carrier: Carrier) -> None:
        self.service = service
        self.member = member
        self.carrier = carrier
        self.readiness = service.readiness

    async def stop_taking(self) -> None:
        await self.member.station.stop_taking()

    async def close(self) -> None:
        await self.member.close()
        await self.service.close()


async def start(context: EdgeContext[RingSettings]) -> RunningNode:
    settings = context.settings
    store = settings.store.store(
        context.store_url, context.name, settings.request_timeout_s, context.metrics.store_observer
    )
    service = RingService(settings, store, context.metrics)
    carrier = Carrier(passes_on=True)
    identity = identify(settings.node, settings.listeners["ring"])
    member = Member(
        service, identity, context.dial("ring-out", settings.node.dial), carrier, carrier, service.readiness
    )
    context.listen("ring", identity.listener, member.station.session)
    context.add_page("/ring", member.status.document)
    store.start_serving()
    node = RunningNode(service, member, carrier)
    try:
        member.start()
    except SettingsError:
        await node.close()
        raise
    return node


def example(settings: RingSettings) -> list[str]:
    return []


NODE_ALONE = Edge("ring", RingSettings, start, example)


class LiveNode(Live[RingSettings]):
    """A node under test.

    `settings` are those under `edges.ring.node`, over short ones; `times` likewise override short default times.
    """

    def __init__(
        self, url: str, beacon_port: int, times: dict[str, float] | None = None, **settings: Any
    ) -> None:
        outer = {name: settings.pop(name) for name in ("listeners", "request_timeout_s") if name in settings}
        node = {"group": GROUP, "beacon_port": beacon_port, "times": {**QUICK, **(times or {})}, **settings}
        fields = {"listeners": {"ring": {"port": 0}}, "node": node, "store": BRISK, **outer}
        super().__init__(NODE_ALONE, url, fields)

    @property
    def _running(self) -> RunningNode:
        assert isinstance(self.running, RunningNode)
        return self.running

    @property
    def member(self) -> Member:
        return self._running.member

    @property
    def station(self) -> Station:
        return self.member.station

    @property
    def carrier(self) -> Carrier:
        return self._running.carrier

    @property
    def name(self) -> bytes:
        return self.station.node.name

    @property
    def leader(self) -> bytes:
        return self.station.node.election.leader

    @property
    def is_leader(self) -> bool:
        return self.station.node.election.is_leader

    @property
    def successor(self) -> bytes | None:
        return self.station.node.head.successor if self.station.successor is not None else None

    def number(self, name: str, **labels: str) -> float:
        """Return a metric of the ring."""
        self.station.tick()
        return self.value(f"penstock_ring_{name}", **labels)


def is_closed(nodes: Sequence[LiveNode]) -> bool:
    """Return whether all the nodes form one ring."""
    following = {node.name: node.successor for node in nodes}
    at, seen = nodes[0].name, 0
    while (after := following.get(at)) is not None and seen < len(nodes):
        at, seen = after, seen + 1
        if at == nodes[0].name:
            break
    return seen == len(nodes) and at == nodes[0].name and all(node.station.predecessor for node in nodes)


def is_ring(nodes: Sequence[LiveNode]) -> bool:
    """Return whether the nodes are one ring with one leader that all know."""
    leaders = [node for node in nodes if node.is_leader]
    return is_closed(nodes) and len(leaders) == 1 and all(node.leader == leaders[0].name for node in nodes)


def free_udp_port() -> int:
    """Return a free UDP port below the range that the kernel assigns."""
    while True:
        port = random.SystemRandom().randrange(12_000, 30_000)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return port


async def settle() -> None:
    """Let pending work in the loop finish."""
    for _ in range(5):
        await asyncio.sleep(0)
