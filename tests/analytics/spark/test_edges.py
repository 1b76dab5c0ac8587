"""Compare what real clients did at a real edge, and what died there, with the tables of the job."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from services.analytics.run import run
from services.analytics.tables import DEATHS, EDGES, TRAFFIC, Table
from services.store import Queue
from services.store.model.errors import LeaseLost
from tests.analytics.spark.test_aggregates import table
from tests.analytics.spark.test_archive import settings
from tests.live import set_up, until
from tests.servers import Server
from tests.store.desk import Desk, numbered
from tests.store.upkeep.test_samples import RARELY, write_samples
from tests.tmq.live import LiveEdge, live_edge

NAME = "orders"
PUT, TAKEN, SIZE = 30, 20, 100


async def work(server: Server) -> None:
    """Put and take messages; one is refused, and messages without consumers expire."""
    await set_up(server)
    async with live_edge(server.url, store={"sample_s": 0.1, "upkeep_s": 0.1}) as edge:
        queue = await edge.declare(NAME, messageTTL="3s", maxLength=PUT)
        client = await edge.client()
        mqid = await client.open(NAME.encode())
        assert mqid is not None
        await client.put(mqid, *(bytes(SIZE) for _ in range(PUT)))
        assert not await client.enq(mqid, bytes(SIZE))
        assert await client.messages(mqid, TAKEN) == [bytes(SIZE)] * TAKEN
        assert await client.close_queue(mqid)  # settles the last one
        await until(lambda: has_died(edge, queue))


async def settle_late(server: Server) -> None:
    """Settle messages again and again after their leases; one put is refused."""
    async with Desk(server, timing=RARELY) as desk:
        desk.store.start_serving()
        queue = await desk.queue(NAME, max_length=10)
        await desk.put(queue, *numbered(10))
        got = await desk.take(queue, 10)
        await desk.settle(got)
        for _ in range(3):
            with pytest.raises(LeaseLost):
                await desk.settle(got)
        await desk.put(queue, *numbered(10))
        assert len(await desk.publish(queue, b"one too many")) == 1
        await write_samples(desk)


async def has_died(edge: LiveEdge, queue: Queue) -> bool:
    stats = await edge.tools.listing.stats(queue)
    return bool(stats["dead_letters"] == PUT - TAKEN)


def summed(output: Path, of: Table, *names: str) -> dict[str, Any]:
    """Return sums over hours, as an hour may have ended in between."""
    rows = table(output, of).values()
    return {name: sum(row[name] for row in rows) for name in names}


def test_it_is_told_as_it_was(spark: SparkSession, server: Server, tmp_path: Path) -> None:
    asyncio.run(work(server))
    done = run(spark, settings(server, tmp_path))
    told = summed(
        tmp_path, TRAFFIC, "in", "in_octets", "out", "out_octets", "acked", "returned", "refused_all"
    )
    octets = {"in_octets": PUT * SIZE, "out_octets": TAKEN * SIZE}
    assert told == {"in": PUT, "out": TAKEN, "acked": TAKEN, "returned": 0, "refused_all": 1, **octets}
    refused = [dict(row["refused"]) for row in table(tmp_path, TRAFFIC).values() if row["refused_all"]]
    assert refused == [{"queue_full": 1}]
    assert summed(tmp_path, DEATHS, "count") == {"count": PUT - TAKEN}
    assert summed(tmp_path, EDGES, "opened") == {"opened": 1}
    assert done["samples"]["quarantined"] == done["samples"]["lost"] == done["dead"]["quarantined"] == 0


def test_settling_late_costs_no_error_budget(spark: SparkSession, server: Server, tmp_path: Path) -> None:
    asyncio.run(settle_late(server))
    run(spark, settings(server, tmp_path))
    (row,) = table(tmp_path, TRAFFIC).values()
    assert (dict(row["refused"]), row["refused_puts"]) == ({"lease_lost": 3, "queue_full": 1}, 1)
    assert row["availability"] == 20 / 21
    budget = json.loads((tmp_path / "reports/latest.json").read_text())["budget"]
    assert (budget["asked"], budget["refused"]) == (21, 1)
