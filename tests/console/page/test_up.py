"""Everything that `penstock up` starts, in one walk: traffic of every protocol, and each view shows what is of it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from protos.rqp_cast import Result
from services.store import QueueSpec, Store
from services.store.peer import PeerSpec
from services.store.report import Report
from services.store.reports import write_report
from tests import reports
from tests.cli.shell import Shell, Up, running
from tests.console.page.conftest import MODULE
from tests.console.page.looking import VIEWS, axe, show
from tests.console.page.traffic import Traffic
from tests.live import until
from tests.ring.clients.client import Client as RingClient
from tests.rqp.cast_hands import HandSender
from tests.rqp.mca_client import Client as McaClient
from tests.servers import free_port

pytestmark = pytest.mark.asyncio(loop_scope="module")
KEY, HELD, OVER = 7, 8, 9  # the key of `cast`, the numbers of `held` and `invoices`
CASTER = "127.0.0.2"  # who sends by RQP/cast
DEAD = 200
QUEUES: dict[str, dict[str, object]] = {
    "cast": {"bindings": {"rqpCast": {"key": KEY}}},
    "orders": {},
    "orders/eu": {},
    "sensors": {"bindings": {"text": {"subscribe": ["plant.*"]}}},
    "returns": {"maxLength": 1, "overflow": "dead_letter_oldest"},
    "invoices": {"bindings": {"rqpMca": {"queueId": OVER}}},
    "to invoices": {"remote": {"protocol": "rqp-mca", "peers": ["warehouse"], "queueId": OVER}},
    "held": {"bindings": {"rqpMca": {"queueId": HELD}}},
    "passed": {},
}
EMPTY_ELSEWHERE = ("jobs", "reservations", "connections", "ring", "report", "audit")
SHOWN = {  # what stands in each view of what goes on
    "overview": r"\d+ dead letters.*sensors.*rqp",
    "queues": r"cast.*held.*invoices.*orders.*passed.*returns.*sensors.*to invoices.*rqp-mca",
    "queues/orders": r"TMQ.*orders",
    "queues/orders/messages": r'"order"',
    "queues/returns/dead": r"rejected_full.*return \d",
    "queues/orders/document": r"kind: Queue",
    "dead": r"returns.*\d\d",
    "jobs": r"returns.*passed.*redrive.*running",
    "edges": r"pubsub.*ring.*rqp.*tmq",
    "connections": r"mca",
    "ring": r"Group 1.*127\.0\.0\.1",
    "peers": r"warehouse.*rqp-mca",
    "peers/warehouse": r"kind: Peer.*to invoices.*rqp",
    "subscriptions": r"plant\.boiler\*",
    "reservations": r"held.*127\.0\.0\.1",
    "report": r"timeout after",
    "audit": r"dead\.redrive.*returns",
    "config": r"console\.",
}


@dataclass
class Everything:
    up: Up
    store: Store

    @property
    def address(self) -> str:
        return str(self.up.told["console"]["url"])

    def place(self, edge: str, listener: str) -> tuple[str, int]:
        found = self.up.told["edges"][edge]["listeners"][listener]
        return found["host"], found["port"]

    async def has(self, name: str, **wanted: int) -> bool:
        stats = await self.store.stats(await self.store.find(name))
        return all(stats[figure] >= least for figure, least in wanted.items())


@pytest_asyncio.fixture(**MODULE)
async def everything(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Everything]:
    said = {"PENSTOCK_EDGES__RQP__CAST__FINDRECEIVER_PORT": str(free_port())}  # the same number everywhere
    with running(Shell(tmp_path_factory.mktemp("up"), said)) as up:
        store = Store(up.tenant["url"], "test")
        try:
            yield Everything(up, store)
        finally:
            await store.close()


async def declare(everything: Everything) -> None:
    host, port = everything.place("rqp", "mca")
    spec = {"protocol": "rqp-mca", "addresses": [f"{host}:{port}"]}
    await everything.store.peers.apply("warehouse", PeerSpec.model_validate(spec), "test")
    for name, said in QUEUES.items():
        spec = {"ackLevel": "memory", **said}
        await everything.store.declare(name, QueueSpec.model_validate(spec), "test")


async def put_by_ring(everything: Everything) -> None:
    client = await RingClient.connect(everything.place("ring", "clients"))
    await client.push(b"returns", *(b"return %d" % number for number in range(DEAD + 1)))
    client.close()
    await until(lambda: everything.has("returns", dead_letters=DEAD))


async def put_by_cast(everything: Everything) -> None:
    (host, asked), (_, find) = (everything.place("rqp", each) for each in ("cast", "findreceiver"))
    net = SimpleNamespace(request_port=asked, findreceiver_port=find)
    with HandSender(net, CASTER, host) as sender:  # type: ignore[arg-type]
        offer = await sender.asked(KEY)
        await sender.approve(offer)
        await sender.data(offer, b"cast away", KEY)
        assert (await sender.end()).result is Result.SUCCESS
    assert await everything.has("cast", ready=1)


async def put_over_mca(page: Page, everything: Everything) -> None:
    """A remote queue leads to this very edge, over the wire."""
    address = f"{everything.address}api/v1/queues/to%20invoices/messages"
    for number in range(3):
        assert (await page.request.post(address, data={"body": f"invoice {number}"})).status == 201
    await until(lambda: everything.has("invoices", ready=3))


async def redrive_slowly(page: Page, everything: Everything) -> None:
    """It is under way as long as anybody looks here."""
    address = f"{everything.address}api/v1/queues/returns/dead/redrive"
    said = {"all": True, "target": "passed", "rate": 1}
    assert (await page.request.post(address, data=said)).status == 202


async def test_every_view_shows_what_everybody_does(everything: Everything, page: Page) -> None:
    await declare(everything)
    traffic = Traffic(everything.place("tmq", "document"), everything.place("pubsub", "text"))
    holder = await McaClient.connect(everything.place("rqp", "mca"))
    async with traffic:
        await holder.request(HELD)
        await put_by_ring(everything)
        await put_over_mca(page, everything)
        await put_by_cast(everything)  # by now this edge has heard of all queues
        await redrive_slowly(page, everything)
        text = Report.model_validate_json(json.dumps(reports.document())).encode()
        assert await asyncio.to_thread(write_report, everything.up.tenant["url"], text, reports.NOW_MS)
        await until(lambda: everything.has("sensors", ready=1))
        found = {}
        for route in VIEWS:
            for width, scheme in ((1280, "light"), (400, "dark")):
                await page.set_viewport_size({"width": width, "height": 800})
                await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
                await show(page, everything.address, route)
                await expect(page.locator("main")).to_contain_text(re.compile(SHOWN[route], re.DOTALL))
                if width == 400 or route in EMPTY_ELSEWHERE:  # the rest is looked at in test_views
                    found[route, width] = await axe(page)
                assert await page.evaluate("document.documentElement.scrollWidth") == width, route
    holder.close()
    assert {where: each for where, each in found.items() if each} == {}
