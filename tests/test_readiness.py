"""What each program declares that it needs: what makes it unready, and that it becomes ready again.

docs/architecture.md, Life cycle. A need without a fault in this table fails the test of its program.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from services.kit.readiness import Readiness
from services.store.keys import DomainKeys
from services.store.spec import LOG_DOMAIN
from tests.console.live_console import LiveConsole
from tests.live import Live, set_up, until
from tests.pubsub.live import LiveEdge as LivePubsub
from tests.ring.clients.live import LiveClients
from tests.rqp.live import LiveEdge as LiveRqp
from tests.servers import Server
from tests.stores import own_server, pytest_asyncio_loop_factories
from tests.sysv.live import LiveBridge
from tests.sysv.local import Keys
from tests.tmq.live import LiveEdge as LiveTmq

__all__ = ["own_server", "pytest_asyncio_loop_factories"]

EDGES: dict[str, Callable[[str], Live]] = {
    "tmq": LiveTmq,
    "rqp": LiveRqp,
    "ring": LiveClients,
    "pubsub": LivePubsub,
}


@contextmanager
def store_is_away(server: Server) -> Iterator[None]:
    server.kill9()
    yield
    server.restart()


@contextmanager
def log_holds_a_foreign_entry(server: Server) -> Iterator[None]:
    """The log is not followed past an entry that cannot be read."""
    stream = DomainKeys(LOG_DOMAIN).log[0]
    foreign = server.call("XADD", stream, "*", "what", "is this")
    yield
    server.call("XDEL", stream, foreign)


FAULTS: dict[str, dict[str, Callable[[Server], AbstractContextManager[None]]]] = {
    "tmq": {"store": store_is_away},
    "rqp": {"store": store_is_away},
    "ring": {"store": store_is_away},
    "pubsub": {"store": store_is_away, "log": log_holds_a_foreign_entry},
    "console": {"catalogue": store_is_away},
    "sysv": {"store": store_is_away},
}


@asynccontextmanager
async def running_program(name: str, url: str, directory: Path) -> AsyncIterator[Readiness]:
    if name in EDGES:
        edge = EDGES[name](url)
        await edge.begin()
        assert edge.running is not None
        yield edge.running.readiness
        await edge.close()
    elif name == "console":
        async with LiveConsole(url) as console:
            assert console.running is not None
            yield console.running.readiness
    else:
        keys, bridge = Keys(), LiveBridge(url, directory / "journals")
        await bridge.queue("orders")
        opened = await bridge.open({"in": {"key": keys.new(), "queue": "orders", "direction": "in"}})
        yield opened.readiness
        await bridge.close()
        keys.remove_all()


@pytest.mark.parametrize("name", list(FAULTS))
async def test_each_need_makes_the_program_unready_until_it_is_met_again(
    own_server: Server, tmp_path: Path, name: str
) -> None:
    await set_up(own_server)
    async with running_program(name, own_server.url, tmp_path) as readiness:
        assert set(readiness.needs) == set(FAULTS[name])
        await until(lambda: readiness.unready() is None)
        for need, fault in FAULTS[name].items():
            with fault(own_server):
                await until(lambda need=need: readiness.needs[need]() is not None)
                assert readiness.unready() is not None
            await until(lambda: readiness.unready() is None)
