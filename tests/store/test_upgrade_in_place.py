"""Using a store with the data of an earlier commit (tests/vectors/README.md)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.store import CommitPart, Outcome
from services.store.log.log import Log, LogSpec
from services.store.model.errors import QueueReserved
from services.store.model.identities import JournalNumber, RequestId
from services.store.pipeline.async_client import AsyncClient
from services.store.pipeline.domain import Timing
from tests.servers import PROGRAMS, Server
from tests.store.desk import Desk, bodies, encode, until
from tests.store.logbook import START

DUMP = Path(__file__).parents[1] / "vectors" / "store-of-0daad533.rdb"
PUSHED = b"request-of-ring!"
LONG_MS = 10**12


@pytest.fixture(params=PROGRAMS)
def written_before(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """Start a server with the data of that commit, without an append-only file, or it would not load them."""
    folder = tmp_path / "store"
    folder.mkdir()
    shutil.copy(DUMP, folder / "dump.rdb")
    server = Server(request.param, folder, {"appendonly": "no"}).start()
    server.call("CONFIG", "SET", "appendonly", "yes")
    yield server
    server.end()


async def test_upgrade_keeps_messages_documents_and_idempotency_keys(
    written_before: Server,
) -> None:
    async with Desk(written_before, timing=Timing(session_timeout_ms=500, beat_s=0.1)) as desk:
        find = desk.store.catalogue.find
        orders, mail = await find("orders"), await find("mail")
        assert (orders.spec.max_deliveries, orders.spec.bindings.rqp_mca.queue_id) == (2, 7)
        assert (mail.spec.max_length, mail.spec.access.peers) == (100, ("10.0.0.0/8",))
        assert (await desk.store.catalogue.numbered("rqp-mca", 7)).qid == orders.qid
        assert [peer.name for peer in await desk.store.peers.all()] == ["shop"]

        # leases of the dead process return
        await until(lambda: swept(desk))
        assert bodies(await desk.take(mail, 10)) == [b"a commit", b"once", b"numbered", b"pushed"]
        assert sorted(bodies(await desk.take(orders, 10))) == [b"five", b"four", b"three"]
        letters = {letter.reason: letter.error async for letter in desk.dead(orders).matching()}
        assert letters["injured"] == "it was broken"
        # with the failure before the lease
        assert letters.keys() == {"injured", "max_deliveries"}

        # idempotent operations are not repeated
        client = AsyncClient(desk.pipe)
        assert (
            await client.publish_once(RequestId(PUSHED, LONG_MS), mail, *encode(b"pushed"), "r")
            is Outcome.AGAIN
        )
        assert (
            await client.publish_once(JournalNumber("host 1", 3), mail, *encode(b"x"), "r") is Outcome.AGAIN
        )
        assert await desk.publish_once("cast 1", mail, b"once") is Outcome.AGAIN
        await desk.commit("t1", CommitPart(mail, [], encode(b"a commit"), "tmq 1"))
        assert (await desk.stats(mail))["ready"] == 0

        # claims hold, and the log continues
        with pytest.raises(QueueReserved, match="mca 7"):
            await desk.domain.claims.reserve(mail, "mca 8", 1000)
        assert await desk.domain.claims.own(orders, "edge 2", 1000) is None
        log = Log(desk.domain, LogSpec(retention_ms=LONG_MS))
        assert [entry.block for entry in await log.read(START)] == [b"SEND weather sun\n"]
        await log.close()


async def swept(desk: Desk) -> bool:
    await desk.domain.sweep()
    return (await desk.stats(await desk.store.catalogue.find("orders")))["in_flight"] == 0
