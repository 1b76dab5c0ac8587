"""Read dead letters that a real store makes: every reason, attributes, notes, names that are not text."""

from __future__ import annotations

from typing import Any

import msgpack
from pyspark.sql import SparkSession

from services.store import QueueSpec
from services.store.model import records
from tests.redis_stream.spark.loading import load
from tests.redis_stream.streams import with_desk
from tests.servers import Server
from tests.store.desk import Desk, numbered, until


async def deaths(desk: Desk) -> dict[str, list[Any]]:
    """Let one or two messages of each reason die, and return what the store reports of them."""
    queue = await desk.queue("orders", max_deliveries=1)
    await desk.put(queue, b"tired")
    await desk.release(await desk.take(queue), failed=True, error="no luck")
    await desk.put(queue, b"refused")
    (delivery,) = await desk.take(queue)
    await desk.note(delivery, "tried:10.0.0.1")
    await desk.reject([delivery], "refused", "never")
    odd = records.encode(b"\x00\xff", {"priority": 4, "key": b"\xff"})
    await desk.bury(queue, odd, "unencodable", "no such charset", origin="mca 10.0.0.1")
    await desk.bury(queue, records.encode(b""), "injured", origin="tmq ::1")
    old = await desk.queue("old \udcfe", message_ttl="1ms")
    await desk.put(old, b"late")

    async def expired() -> bool:
        await desk.domain.tidy(old)
        return await desk.dead(old).count() == 1

    await until(expired)
    full = await desk.queue("full", max_length=1, overflow="dead_letter_oldest")
    await desk.put(full, *numbered(3))
    back = await desk.queue("back")
    await desk.put(back, b"again")
    await desk.reject(await desk.take(back))
    await desk.store.catalogue.declare("back", QueueSpec(), "test", replace=True)
    await desk.dead(back).redrive([letter.id async for letter in desk.dead(back).matching()])
    await desk.reject(await desk.take(back), "refused", "again")
    queues = (queue, old, full, back)
    return {each.name: [letter async for letter in desk.dead(each).matching()] for each in queues}


def ms(time: Any) -> int:
    return round(time.timestamp() * 1000) if time is not None else 0


def test_each_is_a_row_as_the_store_tells_it(spark: SparkSession, server: Server) -> None:
    told = with_desk(server, deaths)
    rows = load(spark, server, kind="dead").collect()
    assert {row.problem for row in rows} == {None}
    found = {(row.queue, row.id): row for row in rows}
    letters = {
        (name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"), letter.id): letter
        for name, of_it in told.items()
        for letter in of_it
    }
    assert found.keys() == letters.keys()
    assert len({letter.reason for letter in letters.values()}) >= 6
    for key, letter in letters.items():
        row = found[key]
        assert (row.reason, row.origin, row.note, row.size) == (
            letter.reason,
            letter.origin,
            letter.note,
            letter.size,
        )
        assert (row.edge, row.acquired, row.failed) == (
            letter.origin.split()[0],
            letter.acquired,
            letter.failed,
        )
        assert [ms(each) for each in (row.enqueued, row.died, row.first, row.last)] == [
            letter.enqueued_ms,
            letter.died_ms,
            letter.first_ms,
            letter.last_ms,
        ]
        assert bytes(row.body) == letter.body
        assert (msgpack.unpackb(row.attributes) if row.attributes else {}) == letter.attributes


def test_they_are_still_there_afterwards(spark: SparkSession, server: Server) -> None:
    """Check that reading removes nothing, and that letters removed while they are read are no loss."""
    with_desk(server, deaths)

    async def purge(desk: Desk) -> int:
        letters = desk.dead(await desk.store.catalogue.find("orders"))
        return await letters.purge([letter.id async for letter in letters.matching()])

    frame = load(spark, server, kind="dead", queue="orders").rdd
    assert frame.count() == 4
    assert with_desk(server, purge) == 4
    assert frame.count() == 0
