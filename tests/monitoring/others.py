"""Systems that edges meet besides their clients: another ring node, an RQP/cast machine, a peer that hangs up.

None of them exists before `meet`, because most tests need a single node.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import threading
from collections.abc import Iterable
from pathlib import Path

from protos.rqp_mca import Profile, encode_available_confirm, encode_queue_confirm
from tests.operator.keeper import Keeper
from tests.ring.links.live import GROUP, free_udp_port
from tests.ring.links.program import NodeProgram
from tests.rqp.cast.hands import HandReceiver, HandSender
from tests.rqp.cast.net import HERE, KEY, THERE, Net
from tests.servers import eventually

# of the edge's node, which would otherwise be alone for minutes
TIMES = {"open_s": 0.5, "newcomer_s": 1, "ack_s": 1}
CAST, ASKED, RINGED = "cast", "asked", "ringed"  # queues
LOCAL_ONES, NARROW = "narrow", 100  # a queue whose messages go into a local one; its limit in bytes
LEFT = "ring/7/gone.example:8085"  # unsent messages of a node that is gone
RUDE = 55  # a queue over RQP, of a peer that accepts messages and hangs up
EVERYBODY = "127.255.255.255"
JUNK = b"\xff" * 16


class Others:
    """Prepare them. `settings`: for a `penstock up` that meets them. Call `end` once."""

    def __init__(self, url: str, folder: Path, keeper: Keeper) -> None:
        self._url = url
        self._folder = folder
        self._beacons = free_udp_port()
        self._net = Net()
        self._nodes: list[NodeProgram] = []
        self._rude = socket.create_server((HERE, 0))
        keeper.apply_peer(
            "rude", "file", protocol="rqp-mca", addresses=["{}:{}".format(*self._rude.getsockname())]
        )
        keeper.declare("rude", remote={"protocol": "rqp-mca", "queueId": RUDE, "peers": ["rude"]})
        keeper.put("rude", b"one")
        threading.Thread(target=self._hang_up_for_ever, daemon=True).start()
        keeper.declare(CAST, bindings={"rqpCast": {"key": KEY}})
        keeper.apply_peer("machine", "file", protocol="rqp-cast", addresses=[self._net.at(THERE)])
        keeper.declare(ASKED, remote={"protocol": "rqp-cast", "key": KEY + 1, "peers": ["machine"]})
        keeper.put(ASKED, b"one")  # so the edge asks the machine for the receiver
        keeper.declare(RINGED, bindings={"ring": {"outbox": GROUP}})
        self._keeper = keeper
        self._sent = 0

    @property
    def settings(self) -> Iterable[str]:
        yield f"edges.ring.node.group={GROUP}"
        yield f"edges.ring.node.beacon_port={self._beacons}"
        yield from (f"edges.ring.node.times.{name}={value}" for name, value in TIMES.items())
        yield from (f"edges.rqp.cast.{name}={value}" for name, value in self._net.machine(HERE).items())

    def talk(self) -> None:
        """Repeatedly send a message and an invalid one from a machine, and an invalid beacon."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            # reaches all nodes, also past one that hangs
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            sock.sendto(JUNK, (EVERYBODY, self._beacons))
        asyncio.run(self._cast())

    def meet(self) -> None:
        """Let a node join and hang while it has messages to answer, and another one leave messages.

        Of three messages for a local queue the first fills it, and the second is too large for it.
        """
        self._keeper.put(LOCAL_ONES, bytes(NARROW), bytes(NARROW + 1), bytes(NARROW))
        self._keeper.declare(LEFT, "edge:ring")
        self._keeper.put(LEFT, b"one")
        node = NodeProgram(self._url, self._folder, self._beacons)
        self._nodes.append(node)
        eventually(node.has_started)
        eventually(lambda: node.status()["predecessor"] and node.status()["successor"])
        os.kill(node.process.pid, signal.SIGSTOP)
        self._keeper.put(RINGED, b"one")

    async def _cast(self) -> None:
        self._sent += 1
        with HandSender(self._net, THERE, HERE) as sender:
            sender.throw(JUNK)
            await sender.send(b"a pump", self._sent)
        with HandReceiver(self._net, THERE, HERE) as receiver:
            with contextlib.suppress(OSError):
                await receiver.offer()
            with contextlib.suppress(OSError):
                await receiver.say(self._net.findreceiver_port, JUNK)

    def _hang_up_for_ever(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._rude.accept()
                with client, contextlib.suppress(OSError):
                    for answer in (encode_available_confirm, encode_queue_confirm):
                        client.recv(1 << 16)
                        client.sendall(answer(Profile.PACKED, RUDE))
                    client.recv(1 << 16)

    def end(self) -> None:
        self._rude.close()
        for node in self._nodes:
            node.kill9()
