"""An RQP edge in its own process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.faults.process import EdgeProcess
from tests.faults.rqp.plan import ADDRESSES, EDGES, HOSTS, SILENCE_S
from tests.rqp.cast.net import Net
from tests.servers import free_port

# short enough to expire during a test, long enough that a busy host does not look like a fault
STORE = {
    "session_timeout_s": 2.0,
    "heartbeat_s": 0.3,
    "sweep_s": 0.3,
    "patience_s": 1.0,
    "reply_timeout_s": 1.5,
    "call_deadline_s": 3.0,
}
MCA = {
    "availability_timeout_s": 1.0,
    "request_timeout_s": 1.0,
    "data_timeout_s": 3.0,
    "max_pause_s": 0.5,
    "reservation_ttl_s": 2.0,  # a killed edge does not release its reservations
}
CAST = {"t_wait1_s": 2.0, "t_wait2_s": 2.0, "t_wait3_s": 2.0, "t_wait4_s": 3.0, "reservation_s": 2.0}
WINDOW = 50
LOST = {  # metrics of uncertain messages that neither a queue nor its dead letters stored
    "rqp-mca": "penstock_rqp_lost_messages_total",
    "rqp-cast": "penstock_rqp_cast_unburied_total",
}


class RqpEdge(EdgeProcess):
    """An RQP edge; its `cables` are ports that lead to the other system's edges."""

    def __init__(self, name: str, directory: Path, store_url: str, net: Net, cables: Sequence[int]) -> None:
        self.port = free_port()
        system = EDGES[name]
        others = [net.at(HOSTS[other]) for other, its in EDGES.items() if its != system]
        # 2.3, 5.4: replicas continue each other's messages, and no message ends as `unconfirmed`
        manners = {"trust_address": True, "duplicate_result": "success"}
        peers = {"others": {"addresses": others, **manners}}
        links = {"addresses": [f"127.0.0.1:{port}" for port in cables], "window": WINDOW}
        settings: dict[str, Any] = {
            "listeners": {"mca": {"port": self.port}},
            "mca": {**MCA, "peers": {"others": links}},
            "cast": net.machine(HOSTS[name], address=ADDRESSES[system], peers=peers, **CAST),
            "outbox": {"lease_s": 0.9 * SILENCE_S, "renew_s": 0.3, "look_s": 0.5},
            "store": STORE,
            "request_timeout_s": 6.0,
        }
        super().__init__(name.replace(" ", "-"), directory, store_url, "rqp", settings)

    def lost(self) -> Counter[str]:
        """Return the messages counted as lost since the start, by protocol."""
        return Counter({protocol: int(self.sample(metric)) for protocol, metric in LOST.items()})
