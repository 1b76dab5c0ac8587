"""Settings shared by tests of failing peers."""

from __future__ import annotations

from tests.rqp.conftest import Start
from tests.rqp.live import LiveEdge
from tests.rqp.mca.peer import McaPeer, peer_settings
from tests.servers import Server


async def sending_edge(server: Server, start: Start, *peers: McaPeer, **mca: object) -> LiveEdge:
    window = mca.pop("window", 1)
    assert isinstance(window, int)
    return await start(server, mca={"peers": peer_settings(*peers, window=window), **mca})


def failures(edge: LiveEdge, reason: str) -> float:
    return edge.value("penstock_rqp_send_failures_total", protocol="rqp-mca", reason=reason)
