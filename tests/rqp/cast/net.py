"""Two machines of RQP/cast on one host: 127.0.0.1 and 127.0.0.2, with ports that are free here."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from services.rqp.cast.agent import CastAgent
from services.store import Queue
from tests.rqp.live import LiveEdge
from tests.servers import free_port

HERE = "127.0.0.1"
THERE = "127.0.0.2"
PORTS = 24  # of each range: other processes may use some of them
KEY = 7


class Net:
    """The port numbers that all machines of a test share."""

    def __init__(self) -> None:
        self.request_port = free_port()
        self.findreceiver_port = free_port()

    def machine(self, host: str, *asked: str, **settings: Any) -> dict[str, Any]:
        """Return `edges.rqp.cast` of a machine that asks these machines, with short pauses between questions."""
        found = {
            "host": host,
            "request_port": self.request_port,
            "findreceiver_port": self.findreceiver_port,
            "receiver_ports": port_range(),
            "sender_ports": port_range(),
            "t_wait1_s": 0.5,
            "port_rest_s": 0.2,
            "first_backoff_s": 0.05,
            "max_backoff_s": 0.2,
            **settings,
        }
        if asked:
            found["peers"] = {"others": {"addresses": [self.at(each) for each in asked]}} | found.get(
                "peers", {}
            )
        return found

    def at(self, host: str) -> str:
        return f"{host}:{self.request_port}"

    def rqprc(self, path: Path, hosts: Iterable[str]) -> Path:
        path.write_text("".join(f"{self.at(host)}\n" for host in hosts))
        return path


def port_range(count: int = PORTS) -> str:
    """Return a range of `count` ports from a free one on; the edge passes over those in use."""
    first = free_port()
    return f"{first}-{first + count - 1}"


def agent(edge: LiveEdge) -> CastAgent:
    return next(each for each in edge.service.agents if isinstance(each, CastAgent))


def unanswered(edge: LiveEdge, reason: str) -> float:
    """Return the number of questions left unanswered for this reason."""
    return edge.value("penstock_rqp_cast_unanswered_total", reason=reason)


def unheard(edge: LiveEdge, reason: str) -> float:
    return edge.value("penstock_rqp_cast_unheard_total", reason=reason)


def ended(edge: LiveEdge, end: str) -> float:
    """Return the number of receiving sessions with this result."""
    return edge.value("penstock_rqp_cast_sessions_total", end=end)


def failed(edge: LiveEdge, reason: str) -> float:
    """Return the number of sending attempts with this result."""
    return edge.value("penstock_rqp_send_failures_total", protocol="rqp-cast", reason=reason)


def got_through(edge: LiveEdge) -> float:
    return edge.value("penstock_rqp_sent_messages_total", protocol="rqp-cast")


# queues


async def keyed(edge: LiveEdge, name: str = "goal", key: int = KEY, **spec: Any) -> Queue:
    """Declare a queue with a key, to which others send."""
    bindings = {"rqpCast": {"key": key, **spec.pop("binding", {})}}
    return await edge.declare(name, bindings=bindings, **spec)


async def remote(edge: LiveEdge, name: str = "out", key: int = KEY, **remote: Any) -> Queue:
    """Declare a transmission queue."""
    spec = remote.pop("spec", {})
    return await edge.declare(name, remote={"protocol": "rqp-cast", "key": key, **remote}, **spec)


async def is_reserved(edge: LiveEdge, queue: Queue) -> bool:
    return bool((await edge.stats(queue))["reserved_by"])
