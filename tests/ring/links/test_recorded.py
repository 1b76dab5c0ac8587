"""A recorded conversation of an original with our node, replayed against a real one (tests/vectors/README.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from services.ring.node.settings import NodeTimes
from tests.live import until
from tests.ring.links.conftest import Start
from tests.ring.links.live import LiveNode
from tests.ring.links.peers import Listening, Tail, Wire, send_beacon

STEPS = json.loads((Path(__file__).parents[2] / "vectors" / "ring-original.json").read_text())
NAME = "127.0.0.1:8085"


class Replay:
    """The original's side. It has no timers: each action follows from the node's previous one."""

    def __init__(self, node: LiveNode, port: int, listening: Listening, tail: Tail) -> None:
        self.node = node
        self._port = port
        self._listening = listening
        self._tail = tail
        self._links: dict[str, Wire] = {}

    async def step(self, step: dict[str, Any]) -> None:
        match step:
            case {"on": "beacon", "send": wire}:
                send_beacon(with_service(bytes.fromhex(wire), self._tail.port), self._port)
            case {"on": "beacon", "expect": wire}:
                expected = with_service(bytes.fromhex(wire), self.node.places["ring"][1])
                while await self._listening.beacon(expected[:4]) != expected:
                    pass
            case {"on": "inbound", "connect": True}:
                self._links["inbound"] = await Wire.to(self.node.places["ring"])
            case {"on": "outbound", "connect": True}:
                self._links["outbound"] = await self._tail.predecessor()
            case {"on": on, "send": wire}:
                self._links[on].say(bytes.fromhex(wire))
            case {"on": on, "expect": wire}:
                await self._links[on].hears(bytes.fromhex(wire))
            case {"on": on, "closed": True}:
                assert await self._links[on].rest() == b""
            case {"on": on, "close": True}:
                self._links[on].close()
            case {"on": "store", "put": payload}:
                self.node.carrier.put(bytes.fromhex(payload))
            case {"on": "store", "arrived": payload}:
                assert self.node.carrier.arrived == [bytes.fromhex(payload)]
            case _:
                raise ValueError(f"unknown step {step}: see tests/vectors/README.md")


def with_service(beacon: bytes, port: int) -> bytes:
    """Return the beacon, completed with this run's port for an OPEN: the vectors end before it."""
    if beacon[:4] != b"OPEN":
        return beacon
    service = str(port).encode()
    return beacon[:8] + bytes([len(service)]) + beacon[9:] + service


async def test_a_conversation_recorded_with_an_original(start: Start, port: int) -> None:
    """Replay discovery, links, election, a forwarded USER and a break (2.2, 3.1-3.6, 4.2-4.4)."""
    with Listening(port) as listening:
        async with Tail() as tail:
            node = await start(name=NAME, times=NodeTimes().model_dump())
            replay = Replay(node, port, listening, tail)
            for number, step in enumerate(STEPS):
                try:
                    await replay.step(step)
                except (TimeoutError, EOFError, AssertionError) as error:
                    error.add_note(f"in step {number}: {step}")
                    raise
            assert not node.is_leader
            await until(lambda: node.station.predecessor is None)
