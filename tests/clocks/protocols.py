"""Run a process with an edge of each protocol, and change its clocks and the store's during work.

    python -m tests.clocks.protocols STORE-URL FOLDER STORE-CLOCKS OWN-CLOCKS

Print JSON by change: what each protocol delivered of messages published before and after it, the results of
leases used after it, messages returned by edges that were killed before it, and the number of clock steps that an edge
counted.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import Any

import uvloop

from protos.rqp_cast import Result
from services.store.model.alarms import CLOCK_STEPPED
from services.system.pdeathsig import die_with_parent
from tests.clocks.clocks import change
from tests.clocks.held import KILLED, LEASES, LIVE, all_held
from tests.live import PATIENCE_S, Live, set_up
from tests.pairs.test_every_pair import leading, numbered
from tests.pairs.world import (
    ELSEWHERE,
    Neighbour,
    World,
    arrived,
    bridged,
    msgsnd,
    put_by_mca,
    put_by_ring,
    put_by_text,
    put_by_tmq,
    tag_in,
    world,
)
from tests.pubsub.live import LiveEdge as TextEdge
from tests.ring.clients.client import Refused
from tests.rqp.cast.hands import HandSender
from tests.servers import Server
from tests.sysv.local import Keys

HOUR_S = 3600.0
CELL_S = 20.0
SUSPENDED = "store suspended"
# wall clock of the store's server; wall clock and boot clock of the edges
CHANGES = {
    "store forward": (HOUR_S, 0.0, 0.0),
    "store back": (-HOUR_S, 0.0, 0.0),
    "edges forward": (0.0, HOUR_S, 0.0),
    "edges back": (0.0, -HOUR_S, 0.0),
    "edges suspended": (HOUR_S, HOUR_S, HOUR_S),
    SUSPENDED: (HOUR_S, 0.0, 0.0),
}
KILLS = ("store forward", "store back", SUSPENDED)  # changes under which edges were killed before
Put = Callable[[World, str, int, Sequence[bytes]], Awaitable[None]]
_ids = itertools.count(1)


async def put_by_cast(world: World, _name: str, key: int, bodies: Sequence[bytes]) -> None:
    """Unused message ids."""
    with HandSender(world.net, ELSEWHERE) as sender:
        for body in bodies:
            offer, identifier = await sender.asked(key), next(_ids)
            await sender.approve(offer, identifier)
            await sender.data(offer, body, key)
            assert (await sender.end()).result is Result.SUCCESS


# by which way a message comes: how it is put in, and the bindings and the remote of its queue
WAYS: dict[str, Put] = {
    "tmq": put_by_tmq,
    "ring": put_by_ring,
    "text": put_by_text,
    "mca received": put_by_mca,
    "cast received": put_by_cast,
    "mca sent": put_by_tmq,
    "cast sent": put_by_tmq,
}
PROTOCOLS = (*WAYS, "sysv")
BODIES = [b"before", b"after"]


class Exchange:
    """Publish and take by one protocol, during one change of clocks."""

    def __init__(self, place: World, way: str, name: str, number: int, key: int) -> None:
        self._place = place
        self._way = way
        self._name = name
        self._number = number
        self._key = key

    async def begin(self, stack: AsyncExitStack, folder: Path) -> None:
        place, name = self._place, self._name
        protocol, _, direction = self._way.partition(" ")
        if direction == "sent":
            await place.declare(arrived(name), bindings=numbered(protocol, self._number))
            await place.declare(name, remote=leading(protocol, self._number))
        elif direction == "received":
            await place.declare(name, bindings=numbered(protocol, self._number))
        else:
            tags = {"text": {"subscribe": [tag_in(name).decode()]}} if self._way == "text" else {}
            await place.declare(name, bindings=tags)
        if self._way == "sysv":
            await stack.enter_async_context(bridged(place, folder / name, name, self._key, 0))

    async def put(self, body: bytes) -> None:
        if self._way == "sysv":
            msgsnd(self._key, [body])
        else:
            await WAYS[self._way](self._place, self._name, self._number, [body])

    async def end(self) -> list[str]:
        name = arrived(self._name) if self._way.endswith("sent") else self._name
        return [body.decode() for body in await self._place.drain(name, len(BODIES))]


async def guarded(work: Awaitable[Any]) -> Any:
    try:
        async with asyncio.timeout(CELL_S):
            return await work
    except (AssertionError, OSError, EOFError, Refused) as error:  # the test shows which cell it is
        return repr(error)


class Clocked:
    """The store's server and the edges, with their clocks."""

    def __init__(self, server: Server, store: Path, own: Path) -> None:
        self._server, self._store, self._own = server, store, own

    def change(self, name: str) -> None:
        store_s, wall_s, boot_s = CHANGES[name]
        if name != SUSPENDED:
            change(self._own, wall_s, boot_s)
            change(self._store, store_s, 0.0)
            return
        with self._server.client() as client:
            info = client.call("INFO", "server").decode()
        pid = int(info.partition("process_id:")[2].split()[0])
        os.kill(pid, signal.SIGSTOP)
        try:
            change(self._store, store_s, 0.0)
        finally:
            os.kill(pid, signal.SIGCONT)


async def exchange(place: World, folder: Path, keys: Keys, clocked: Clocked, name: str) -> dict[str, Any]:
    """Return the results of each protocol's messages and leases during one change."""
    async with AsyncExitStack() as stack:
        row = list(CHANGES).index(name)
        exchanges = {
            way: Exchange(place, way, f"{way} {name}".replace(" ", "-"), 1000 * row + 10 * index, keys.new())
            for index, way in enumerate(PROTOCOLS, 1)
        }
        found: dict[str, Any] = {}
        for way, each in exchanges.items():
            await each.begin(stack, folder)
            found[way] = await guarded(each.put(BODIES[0]))
        leases = all_held(LIVE, place, 10_000 + 1000 * row)
        for held in leases.values():
            await held.begin()
        clocked.change(name)
        for way, each in exchanges.items():
            found[way] = found[way] or await guarded(each.put(BODIES[1])) or await guarded(each.end())
        return {"found": found, "held": {kind: await guarded(held.finish()) for kind, held in leases.items()}}


async def killed(
    server: Server, folder: Path, clocked: Clocked, name: str, neighbour: Neighbour
) -> dict[str, Any]:
    """Return what live edges get of edges that are killed before the change."""
    first = 20_000 + 1000 * KILLS.index(name)
    command = [sys.executable, "-m", "tests.clocks.doomed", server.url, folder, str(first)]
    command += [str(part) for part in astuple(neighbour)]
    doomed = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, preexec_fn=partial(die_with_parent, os.getpid())
    )
    try:
        assert doomed.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            assert await doomed.stdout.readline() == b"held\n"
        async with world(server, neighbour=neighbour, **LEASES) as place:
            doomed.kill()
            await doomed.wait()
            clocked.change(name)
            leases = all_held(KILLED, place, first)
            found = await asyncio.gather(*(guarded(held.again()) for held in leases.values()))
            return dict(zip(leases, found, strict=True))
    finally:
        if doomed.returncode is None:
            doomed.kill()
            await doomed.wait()


def stepped(edge: Live[Any]) -> float:
    """Return how many steps of the store's clock the edge has counted."""
    return edge.value("penstock_store_events_total", reason=CLOCK_STEPPED)


async def all_killed(server: Server, folder: Path, clocked: Clocked) -> dict[str, Any]:
    """Return the results by change. The neighbour has its own store with an unchanged clock."""
    for name in KILLS:
        (folder / name).mkdir()
    other = Server("valkey", folder / "neighbour").start()
    try:
        await set_up(other)
        text = await TextEdge(other.url).start()
        neighbour = Neighbour(text.link_address, *text.places["text"])
        returned = {name: await killed(server, folder / name, clocked, name, neighbour) for name in KILLS}
        await text.close()
    finally:
        other.end()
    return returned


async def main(url: str, folder: Path, *files: Path) -> dict[str, Any]:
    server = Server("valkey", folder, port=int(url.rpartition(":")[2]))
    await set_up(server)
    clocked, keys, steps = Clocked(server, *files), Keys(), {}
    returned = await all_killed(server, folder, clocked)
    results: dict[str, Any] = {"found": {}, "held": {}}
    try:
        async with world(server, cast={"t_wait2_s": 60.0}) as place:
            for name in CHANGES:
                before = stepped(place.tmq)
                for kind, found in (await exchange(place, folder, keys, clocked, name)).items():
                    results[kind][name] = found
                steps[name] = stepped(place.tmq) - before
    finally:
        keys.remove_all()
    return {**results, "returned": returned, "steps": steps}


if __name__ == "__main__":
    paths = [Path(argument) for argument in sys.argv[2:]]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(main(sys.argv[1], *paths))))
