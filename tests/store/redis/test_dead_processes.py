"""Claims of a dead local process are released at once; those of remote processes expire."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from services.store import QueueSpec, Store
from services.store.model.errors import QueueReserved
from services.store.pipeline.async_client import AsyncClient
from services.store.redis import process_names as names
from services.store.redis.process_names import has_died, process_name
from tests.servers import Server

LONG_MS = 600_000
HOLDER = """
import asyncio, sys
from services.store import Store
from services.store.pipeline.async_client import AsyncClient
from services.store.redis.process_names import process_name

async def hold(url):
    store = Store(url, "tmq")
    queue = await store.catalogue.find("orders")
    domain = store.open_domain(queue.domain)
    taken = await AsyncClient(domain.pipe).take(queue, 1)
    assert len(taken) == 1
    name = process_name("rqp")
    await domain.claims.reserve(queue, f"mca {name} 7 127.0.0.1", 600_000)
    assert await domain.claims.own(queue, f"{name} 1f", 600_000)
    print(name, flush=True)
    await asyncio.Event().wait()

asyncio.run(hold(sys.argv[1]))
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server("valkey", tmp_path / "store").start()
    yield server
    server.end()


@pytest.fixture
async def store(server: Server) -> AsyncIterator[Store]:
    store = Store(server.url, "tmq")
    await store.initialise()
    yield store
    await store.close()


async def test_claims_of_a_killed_local_process_are_released(store: Store, server: Server) -> None:
    queue, _ = await store.catalogue.declare("orders", QueueSpec(visibility_timeout="10m"), "test")
    domain = store.open_domain(queue.domain)
    client = AsyncClient(domain.pipe)
    await client.publish(queue, [b"\0\0\0\3one"], "test")
    holder = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLDER, server.url, stdout=asyncio.subprocess.PIPE
    )
    assert holder.stdout is not None
    name = (await holder.stdout.readline()).decode().strip()
    await domain.close_dead()  # claims of live processes stay
    await domain.sweep()
    assert not has_died(name)
    assert await domain.claims.own(queue, "other", LONG_MS) is None
    with pytest.raises(QueueReserved):
        await domain.claims.reserve(queue, "other", LONG_MS)
    assert (await store.listing.stats(queue))["in_flight"] == 1
    holder.kill()
    await holder.wait()
    assert has_died(name)
    await domain.claims.available(queue, "other")
    assert await domain.claims.reserve(queue, "other", LONG_MS) == 2
    assert await domain.claims.own(queue, "other", LONG_MS) == 2
    await domain.close_dead()
    assert await domain.sweep() == 1
    assert len(await client.take(queue, 1)) == 1


def test_process_of_another_machine_is_not_declared_dead() -> None:
    edge, host, machine, pid, token = process_name("tmq").rsplit("-", 4)
    assert not has_died(f"{edge}-{host}-{'0' * 8 if machine != '0' * 8 else '1' * 8}-{1 << 30}-{token}")
    assert not has_died(f"{edge}-{host}-{pid}-{token}")  # names of older versions have fewer parts
    assert not has_died("other")


@pytest.mark.parametrize("renewed", ["machine-id", "net/eth0/address"])
def test_cloned_virtual_machine_is_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renewed: str
) -> None:
    """Check that clones of one memory snapshot differ, although they share boot id, host name and process namespace."""
    monkeypatch.setattr(names, "MACHINE_ID", tmp_path / "machine-id")
    monkeypatch.setattr(names, "INTERFACES", tmp_path / "net")
    for interface in ("eth0/device", "wlan0/device", "wlan0/phy80211", "docker0"):
        (tmp_path / "net" / interface).mkdir(parents=True)
    for file in ("machine-id", "net/eth0/address", "net/wlan0/address", "net/docker0/address"):
        (tmp_path / file).write_text("of before\n")
    machine = names.machine.__wrapped__
    before = machine()
    (tmp_path / "net/wlan0/address").write_text("random\n")
    (tmp_path / "net/docker0/address").write_text("new\n")
    assert machine() == before
    (tmp_path / renewed).write_text("of the clone\n")
    assert machine() != before
