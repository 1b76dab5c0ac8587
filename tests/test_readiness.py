"""Test for every declared need of a program: the fault that makes it unmet, the answer of /readyz, and recovery.

docs/architecture.md, Processes. A need without a row here, or in the operator's test in
tests/operator/documents/test_definitions.py, fails `test_every_declared_need_has_a_row`.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from protos.ring import Frame, Operation, encode_frame
from services.console import process as console
from services.console.settings import ConsoleSettings
from services.kit.config.settings import load
from services.kit.edge import Edge, edges
from services.kit.process.process import EdgeProcess
from services.kit.readiness import Readiness
from services.kit.stop import Stop
from services.ring.edge import RunningRing
from services.ring.node.outgoing import ownership
from services.ring.node.users import Users
from services.store import QueueSpec, Store
from services.store.model.keys import DomainKeys
from services.store.model.spec import LOG_DOMAIN
from services.sysv import process as sysv
from services.sysv.settings import SysvSettings
from tests.cli.shell import ANY_PORT
from tests.declared_needs import MANY, declared_needs
from tests.kit.harness import Program, eventually
from tests.kit.workers.worker_processes import children
from tests.live import until
from tests.ring.chain.live import LiveRing
from tests.ring.links.live import free_udp_port
from tests.ring.users.members import lose_queue
from tests.servers import Server, free_port
from tests.stores import pytest_asyncio_loop_factories
from tests.sysv.local import Keys

__all__ = ["pytest_asyncio_loop_factories"]


@asynccontextmanager
async def store_is_away(server: Server) -> AsyncIterator[None]:
    """Kill the server; restart it at the end."""
    server.kill9()
    yield
    server.restart()


@asynccontextmanager
async def log_holds_a_foreign_entry(server: Server) -> AsyncIterator[None]:
    """Add an unreadable entry, which stops readers of the log; remove it at the end."""
    stream = DomainKeys(LOG_DOMAIN).log[0]
    foreign = server.call("XADD", stream, "*", "what", "is this")
    yield
    server.call("XDEL", stream, foreign)


Fault = Callable[[Server], AbstractAsyncContextManager[None]]
STORE: dict[str, Fault] = {"store": store_is_away}
PROGRAMS: dict[str, dict[str, Fault]] = {
    "tmq": STORE,
    "rqp": STORE,
    "ring": STORE,
    "pubsub": {**STORE, "log": log_holds_a_foreign_entry},
    "console": {"catalogue": store_is_away},
    "sysv": STORE,
}
PROCESS = {"started", "accepting"}  # needs of every program, unmet only during its start and its end
WORKERS = {"accepting", MANY}
NODE = {"storing", "ownership", "name"}
OPERATOR = {"definitions", "resources", "store"}
ROWS = {
    "services/kit/process/process.py": PROCESS,
    "services/kit/workers/worker_status.py": WORKERS,
    "services/queueing/service.py": set(PROGRAMS["tmq"]) | set(PROGRAMS["ring"]),
    "services/rqp/service.py": set(PROGRAMS["rqp"]),
    "services/pubsub/service.py": set(PROGRAMS["pubsub"]),
    "services/console/process.py": set(PROGRAMS["console"]),
    "services/sysv/bridge.py": set(PROGRAMS["sysv"]),
    "services/ring/node/users.py": NODE,
    "operator/penstock_operator/run.py": OPERATOR,
}


def test_every_declared_need_has_a_row() -> None:
    assert declared_needs() == ROWS
    assert set(edges()) <= set(PROGRAMS)


@dataclass(frozen=True, slots=True)
class Running:
    """A program in this event loop, with its health port."""

    process: EdgeProcess[object]
    stop: Stop
    task: asyncio.Task[bool]
    port: int

    async def readyz(self, port: int = 0) -> tuple[int, str]:
        """Return status and text of /readyz; (0, '') if the port is closed."""
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"http://127.0.0.1:{port or self.port}/readyz") as answer,
            ):
                return answer.status, await answer.text()
        except aiohttp.ClientError:
            return 0, ""

    async def is_ready(self) -> bool:
        return await self.readyz() == (200, "ok\n")

    async def names(self, need: str) -> bool:
        status, text = await self.readyz()
        return status == 503 and text.startswith(f"{need}: ")


def start(name: str, mappings: dict[str, object], page: int = 0) -> Running:
    """Start a program. mappings: of the bridge. page: the console's port."""
    settings = load(None, {"health": {"port": free_port()}, "drain": {"grace_s": 600}})
    process: EdgeProcess[object]
    if name == "console":
        hosted = console.Hosted(console=ConsoleSettings(port=page), everything=settings)
        process = EdgeProcess(Edge(name, console.Hosted, console.start, list), settings, hosted)
    elif name == "sysv":
        bridge = SysvSettings.model_validate({"mappings": mappings})
        process = EdgeProcess(Edge(name, sysv.Hosted, sysv.start, list), settings, sysv.Hosted(bridge=bridge))
    else:
        process = EdgeProcess(edges()[name], settings, settings.edge(edges()[name]))
    assert process.readiness.unready() == "started: starting"
    stop = Stop()
    return Running(process, stop, asyncio.create_task(process.run(stop)), settings.health.port)


@pytest.fixture
def settings(own_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REDIS_URL", own_server.url)
    for variable, value in ANY_PORT.items():
        monkeypatch.setenv(variable, value)


async def declare_orders(server: Server) -> None:
    tools = Store(server.url, "test")
    await tools.catalogue.declare("orders", QueueSpec(), "test")
    await tools.close()


@pytest.mark.usefixtures("settings")
@pytest.mark.parametrize("name", list(PROGRAMS))
async def test_each_need_makes_the_program_unready_until_it_is_met_again(
    own_server: Server, name: str
) -> None:
    keys = Keys()
    await declare_orders(own_server)
    mappings: dict[str, object] = {"in": {"key": keys.new(), "queue": "orders", "direction": "in"}}
    page = free_port()
    running = start(name, mappings, page)
    await until(running.is_ready)
    assert set(running.process.readiness.needs) == PROCESS | set(PROGRAMS[name])
    for need, fault in PROGRAMS[name].items():
        async with fault(own_server):
            await until(lambda need=need: running.names(need))
        await until(running.is_ready)
    running.stop.drain.set()
    await until(lambda: running.names("accepting"))
    if name == "console":  # the page's own port omits the reasons
        assert await running.readyz(page) == (503, "not ready: accepting; see the log\n")
    running.stop.hurry.set()
    await running.task
    keys.remove_all()


@pytest.mark.usefixtures("settings")
async def test_a_program_that_waits_for_the_store_to_start_says_so(own_server: Server) -> None:
    """Check that the bridge, which checks its queues first, reports that it waits; edges and console start anyway."""
    keys = Keys()
    await declare_orders(own_server)
    own_server.kill9()
    running = start("sysv", {"in": {"key": keys.new(), "queue": "orders", "direction": "in"}})
    await until(lambda: running.names("started"))
    own_server.restart()
    await until(running.is_ready)
    running.stop.drain.set()
    running.stop.hurry.set()
    await running.task
    keys.remove_all()


async def test_a_check_that_fails_is_a_need_that_is_not_met() -> None:
    def check() -> str | None:
        raise OSError("no such file")

    readiness = Readiness(first=lambda: None, second=check)
    assert readiness.unready() == "second: the check failed: OSError('no such file')"
    with pytest.raises(ValueError, match="two needs are named 'first'"):
        readiness.include(Readiness(first=lambda: "another"))


def test_each_worker_is_a_need_and_names_the_inner_one(tmp_path: Path) -> None:
    flag = tmp_path / "away"
    with Program(f"edges.echo.unready_while={flag}", "drain.grace_s=600", workers=2) as program:
        eventually(lambda: program.page("/readyz") == (200, "ok\n"))
        flag.touch()
        eventually(lambda: program.page("/readyz") == (503, "worker 0: flag: the flag is up\n"))
        assert program.page("/healthz") == (200, "ok\n")
        flag.unlink()
        eventually(lambda: program.page("/readyz") == (200, "ok\n"))
        _, *workers = children(program)
        os.kill(workers[-1], signal.SIGKILL)
        eventually(lambda: program.page("/readyz")[1].startswith("worker 1: "))
        eventually(lambda: program.page("/readyz") == (200, "ok\n"))
        program.signal(signal.SIGTERM)
        eventually(lambda: program.page("/readyz") == (503, "accepting: draining\n"))
        program.signal(signal.SIGTERM)
        assert program.wait() == 1


# the node of a ring: an unmet need makes it leave its ring; the process stays ready for clients (ring.md 4.7)


async def test_each_need_of_a_node_keeps_it_out_of_its_ring_until_it_is_met_again(
    own_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ownership, "DUPLICATE_S", 0.5)
    beacons, title = free_udp_port(), "127.0.0.1:node"
    first, second = LiveRing(own_server.url, beacons, title), LiveRing(own_server.url, beacons, title)
    await first.open()
    await until(lambda: says(first, None))
    assert set(users_of(first).readiness.needs) == NODE | set(PROGRAMS["ring"])
    async with store_is_away(own_server):
        await until(lambda: says(first, "store"))
    await until(lambda: says(first, None))
    await pause(first, True)
    push = encode_frame(Frame(Operation.PUSH, b"asker", b"orders", b"x", b"1" * 16))
    users_of(first).user_sink.received(push, lambda: None)
    await until(lambda: says(first, "storing"))
    await pause(first, False)
    await until(lambda: says(first, None))
    name = users_of(first).queue_name
    await lose_queue(first.tools, name)
    await until(lambda: says(first, "ownership"))
    await until(lambda: says(first, None))  # it creates the queue again
    await second.open()
    await until(lambda: says(second, "name"))
    assert second.is_ready()
    await first.close()
    await until(lambda: says(second, None))
    await second.close()


def users_of(node: LiveRing) -> Users:
    assert isinstance(node.running, RunningRing)
    assert node.running.node is not None
    return node.running.node.users


def says(node: LiveRing, need: str | None) -> bool:
    """Return whether the page /ring reports this need, or None, as the reason to be away from the ring."""
    away = node.pages["/ring"]()["away"]
    return away is None if need is None else bool(away and away.startswith(f"{need}: "))


async def pause(node: LiveRing, is_paused: bool) -> None:
    spec = QueueSpec(max_deliveries=0, paused=is_paused)
    name = users_of(node).queue_name
    await node.tools.catalogue.declare(name, spec, "edge:ring", replace=True, internal=True)
