"""Check that the data source reads what edges and the store write (docs/store.md, "Samples")."""

from __future__ import annotations

import asyncio
from typing import Any

from services.redis_stream.columns import Origin, batch
from services.redis_stream.schema import Kind
from services.store.catalogue.reading import BEGINNING, StreamReader
from services.store.model.keys import DomainKeys
from tests.servers import Server
from tests.store.desk import Desk
from tests.store.upkeep.test_samples import RARELY, write_samples


async def work(server: Server) -> None:
    async with Desk(server, timing=RARELY) as desk:
        desk.store.start_serving()
        queue = await desk.queue("orders\udcff", max_length=2)
        await desk.publish(queue, b"a", b"bb", b"ccc")
        await desk.settle(await desk.take(queue, 1))
        await desk.store.get_domain("main").tidy(queue)
        await write_samples(desk)


def test_samples_of_all_kinds_are_read_without_a_problem(server: Server) -> None:
    asyncio.run(work(server))
    key = DomainKeys("main").samples
    with StreamReader(server.url) as reading:
        state = reading.state(key)
        assert state is not None
        pages = [page.entries for page in reading.pages(key, BEGINNING, state.last, 100)]
    rows: list[dict[str, Any]] = [
        row for page in pages for row in batch(Origin(Kind.SAMPLES, key, "main"), page).to_pylist()
    ]
    assert [row["problem"] for row in rows if row["problem"] is not None] == []
    found = {row["kind"]: row for row in rows}
    assert set(found) == {"queue", "edge", "depth"}
    queue, depth = found["queue"], found["depth"]
    assert (queue["queue"], queue["in"], queue["out"], queue["acked"]) == ("orders\\xff", 2, 1, 1)
    assert (dict(queue["refused"]), sum(queue["put"]), sum(queue["wait"])) == ({"queue_full": 1}, 2, 1)
    assert (depth["queue"], depth["len"], depth["added"], depth["acked"]) == ("orders\\xff", 1, 2, 1)
