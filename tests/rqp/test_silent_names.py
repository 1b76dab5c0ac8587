"""Machines whose names hang with a silent name server and the real resolver (rqp_mca.md 3.4, rqp_cast.md 1.1)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from tests.live import set_up, until
from tests.rqp.cast.net import HERE, THERE, Net, keyed, remote
from tests.rqp.live import LiveEdge
from tests.rqp.program import EdgeProgram
from tests.servers import PROGRAMS, Server
from tests.silent import NameServer, on_silent_machine

HANGING = [f"hangs{number}.example" for number in range(8)]


class Site:
    """Stores and edges of one test, in its loop and on its machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._servers: list[Server] = []
        self._edges: list[LiveEdge] = []

    async def __aenter__(self) -> Site:
        return self

    async def __aexit__(self, *_: object) -> None:
        for edge in self._edges:
            await edge.close()
        for server in self._servers:
            server.end()

    async def server(self) -> Server:
        self._servers.append(
            Server(next(iter(PROGRAMS)), self._folder / f"store{len(self._servers)}").start()
        )
        await set_up(self._servers[-1])
        return self._servers[-1]

    async def edge(self, **settings: Any) -> LiveEdge:
        """Start an edge on its own store."""
        return await self.on((await self.server()).url, **settings)

    async def on(self, url: str, **settings: Any) -> LiveEdge:
        self._edges.append(LiveEdge(url, **settings))
        return await self._edges[-1].start()


async def hang(names: NameServer) -> None:
    """Wait until all of the names are being resolved."""
    await until(lambda: names.asked.issuperset(HANGING))


def test_hanging_names_do_not_delay_mca_peers(tmp_path: Path) -> None:
    """Check that hanging names do not delay MCA peers, on a connection opened meanwhile.

    Eight names hang, and another name is resolved meanwhile.
    """

    async def scenario(names: NameServer) -> None:
        async with Site(tmp_path) as site:
            there = await site.edge()
            goals = [await there.numbered(f"goal{number}", number) for number in (7, 8)]
            port = there.places["mca"][1]
            peers = {
                "lost": {"addresses": HANGING},
                "address": {"addresses": [f"127.0.0.1:{port}"]},
                "name": {"addresses": [f"localhost:{port}"]},
            }
            here = await site.edge(mca={"peers": peers})
            await hang(names)
            for number, peer, goal in ((7, "address", goals[0]), (8, "name", goals[1])):
                queue = await here.remote(peer, number, peers=["lost", peer])
                await here.put(queue, b"hello")
                await until(partial(there.bodies, goal))
                await until(partial(here.is_empty, queue))
            await site.on(here.url)  # a store whose URL has an address is reached, too

    on_silent_machine(scenario, tmp_path)


def test_hanging_names_do_not_delay_cast_machines(tmp_path: Path) -> None:
    """Check that hanging names do not delay RQP/cast machines."""

    async def scenario(names: NameServer) -> None:
        async with Site(tmp_path) as site:
            net = Net()
            there = await site.edge(cast=net.machine(THERE, sends=False))
            goal = await keyed(there)
            others = {"lost": {"addresses": [net.at(name) for name in HANGING]}}
            here = await site.edge(cast=net.machine(HERE, THERE, receives=False, peers=others))
            await hang(names)
            queue = await remote(here, peers=["others"])
            await here.put(queue, b"hello")
            await until(partial(there.bodies, goal))
            await until(partial(here.is_empty, queue))

    on_silent_machine(scenario, tmp_path)


def test_hanging_names_do_not_delay_the_stop(tmp_path: Path) -> None:
    """Check that hanging names do not delay the stop by SIGTERM; all possible messages were sent."""

    async def scenario(names: NameServer) -> None:
        async with Site(tmp_path) as site:
            there = await site.edge()
            goal = await there.numbered("goal", 7)
            server = await site.server()
            here = await site.on(server.url)
            queue = await here.remote("away", peers=["lost", "found"])
            await here.service.stop_taking()  # only the program remains to send
            peers = {"lost": {"addresses": HANGING}, "found": {"addresses": [there.address]}}
            async with EdgeProgram(server.url, tmp_path, {"mca": {"peers": peers}}) as program:
                await hang(names)
                await here.put(queue, b"hello")
                await until(partial(there.bodies, goal))
                program.process.terminate()
                assert await program.ended() == 0

    on_silent_machine(scenario, tmp_path)
