"""Run a `penstock up` with queues and clients of every protocol, for pictures of the page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import aiohttp

from protos.rqp_cast import Result
from services.store import QueueSpec, Store
from services.store.model.peer import PeerSpec
from tests.cli.shell import Shell, Up, running
from tests.console.local import HEADERS, keep
from tests.rqp.cast.hands import HandSender
from tests.servers import free_port

KEY, HELD, OVER = 7, 8, 9  # the key of `cast`, the numbers of `held` and `invoices`
CASTER = "127.0.0.2"  # the sender by RQP/cast


@dataclass
class DemoStack:
    up: Up
    store: Store

    @property
    def url(self) -> str:
        return str(self.up.tenant["url"])

    @property
    def address(self) -> str:
        return str(self.up.announcement["console"]["url"])

    def place(self, edge: str, listener: str) -> tuple[str, int]:
        found = self.up.announcement["edges"][edge]["listeners"][listener]
        return found["host"], found["port"]

    async def has(self, name: str, **wanted: int) -> bool:
        stats = await self.store.listing.stats(await self.store.catalogue.find(name))
        return all(stats[figure] >= least for figure, least in wanted.items())

    async def declare(self, queues: Mapping[str, Mapping[str, object]], owner: str = "test") -> None:
        """Declare queues, and the peer `warehouse`, which is this edge itself."""
        host, port = self.place("rqp", "mca")
        spec = {"protocol": "rqp-mca", "addresses": [f"{host}:{port}"]}
        await self.store.peers.apply("warehouse", PeerSpec.model_validate(spec), owner)
        for name, value in queues.items():
            spec = {"ackLevel": "memory", **value}
            await self.store.catalogue.declare(name, QueueSpec.model_validate(spec), owner)

    async def put_by_cast(self) -> None:
        (host, asked), (_, find) = (self.place("rqp", each) for each in ("cast", "findreceiver"))
        net = SimpleNamespace(request_port=asked, findreceiver_port=find)
        with HandSender(net, CASTER, host) as sender:  # type: ignore[arg-type]
            offer = await sender.asked(KEY)
            await sender.approve(offer)
            await sender.data(offer, b"cast away", KEY)
            assert (await sender.end()).result is Result.SUCCESS
        assert await self.has("cast", ready=1)

    async def ask(
        self, method: str, path: str, body: Mapping[str, object], status: int, token: str = ""
    ) -> None:
        """Send a request to the API, and check the status."""
        heads = {"If-Match": "*"} if method != "POST" or path.endswith("/purge") else {}
        signed = {"Authorization": f"Bearer {token}"} if token else HEADERS
        async with (
            aiohttp.ClientSession(headers={**heads, **signed}) as session,
            session.request(method, f"{self.address}api/v1/{path}", json=body) as answer,
        ):
            assert answer.status == status, await answer.text()


@asynccontextmanager
async def demo_stack(folder: Path, fields: Mapping[str, str] | None = None) -> AsyncIterator[DemoStack]:
    """Run the stack; `fields` has further settings, as environment variables."""
    rqp = {
        "PENSTOCK_EDGES__RQP__CAST__FINDRECEIVER_PORT": str(free_port()),  # the same number on all machines
        "PENSTOCK_EDGES__RQP__MCA__RESERVATION_TTL_S": "600",  # reservations of silent senders stay visible
    }
    keep(folder / "penstock-data")
    with running(Shell(folder, {**rqp, **(fields or {})})) as up:
        store = Store(str(up.tenant["url"]), "test")
        try:
            yield DemoStack(up, store)
        finally:
            await store.close()
