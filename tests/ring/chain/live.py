"""A node with its client port in the running loop: the real edge with short timeouts."""

from __future__ import annotations

from services.kit.metrics.tally import Tally
from services.ring.edge import EDGE, RunningRing
from services.ring.node.links.station import Station
from services.ring.node.queues.remote_requests import RemoteRequests
from services.ring.settings import RingSettings
from tests.live_queues import LiveQueues
from tests.ring.clients.client import Client
from tests.ring.clients.live import CLIENTS
from tests.ring.links.live import BRISK, GROUP, QUICK


class LiveRing(LiveQueues[RingSettings]):
    def __init__(self, url: str, beacon_port: int, name: str | None = None, **times: float) -> None:
        node = {"group": GROUP, "beacon_port": beacon_port, "times": {**QUICK, **times}, "window": 16}
        fields = {
            "listeners": {CLIENTS: {"port": 0}, "ring": {"port": 0}},
            "node": node if name is None else {**node, "name": name},
            "store": BRISK,
        }
        super().__init__(EDGE, url, fields)

    @property
    def tally(self) -> Tally:
        assert isinstance(self.running, RunningRing)
        return self.running.service.tally

    @property
    def station(self) -> Station:
        assert isinstance(self.running, RunningRing)
        assert self.running.node is not None
        return self.running.node.member.station

    @property
    def remote_requests(self) -> RemoteRequests:
        """Return the remote requests; their number is the number of requests that wait for the ring."""
        assert isinstance(self.running, RunningRing)
        assert self.running.node is not None
        return self.running.node.users.remote_requests

    @property
    def successor(self) -> bytes | None:
        return self.station.node.head.successor if self.station.successor is not None else None

    async def client(self) -> Client:
        client = await Client.connect(self.places[CLIENTS])
        self.adopt(client.close)
        return client


def is_ring(nodes: list[LiveRing]) -> bool:
    """Return whether the nodes form one ring with one leader that all of them know."""
    following = {node.station.node.name: node.successor for node in nodes}
    first = at = next(iter(following))
    for _ in nodes[1:]:
        after = following.get(at)
        if after is None or after == first:
            return False
        at = after
    leaders = {node.station.node.election.leader for node in nodes}
    leading = [node for node in nodes if node.station.node.election.is_leader]
    return following.get(at) == first and len(leaders) == len(leading) == 1
