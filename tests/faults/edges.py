"""A TMQ edge in its own process, with time-outs short enough to expire during a test."""

from __future__ import annotations

from pathlib import Path

from protos.tmq import Dialect
from tests.faults.plan import REPLY_TIMEOUT_S, REQUEST_TIMEOUT_S, SESSION_TIMEOUT_S
from tests.faults.process import EdgeProcess
from tests.servers import free_port

WAITS = {
    "patience_s": 1.0,
    "reply_timeout_s": REPLY_TIMEOUT_S,
    "session_timeout_s": SESSION_TIMEOUT_S,
    "heartbeat_s": 0.5,
    "sweep_s": 0.5,
    "upkeep_s": 2.0,
}


class EdgeServer(EdgeProcess):
    """One of the TMQ edges on a store."""

    def __init__(self, index: int, directory: Path, store_url: str, call_deadline_s: float = 3.0) -> None:
        self.index = index
        self.ports = {dialect: free_port() for dialect in Dialect}
        listeners = {
            dialect.value: {"port": port, "dialect": dialect.value, "transactions": "atomic"}
            for dialect, port in self.ports.items()
        }
        settings = {
            "listeners": listeners,
            "transaction": {"time_limit_s": 10.0},
            "request_timeout_s": REQUEST_TIMEOUT_S,
            "store": WAITS | {"call_deadline_s": call_deadline_s},
        }
        super().__init__(f"edge-{index}", directory, store_url, "tmq", settings)
