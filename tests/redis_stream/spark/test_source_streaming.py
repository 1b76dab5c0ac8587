"""Test `redis_stream` as a streaming query: entries are read once, however the query ends between batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from tests.redis_stream.streams import KEY, LETTER, add, numbered, with_desk
from tests.servers import Server, eventually
from tests.store.desk import Desk

LONG_S = 240  # for what takes seconds on an idle machine


class Query:
    """A query that begins at its checkpoint, and its batches."""

    def __init__(self, spark: SparkSession, folder: Path, options: dict[str, Any]) -> None:
        self._spark = spark
        self._folder = folder
        self._options = {name: str(value) for name, value in options.items()}
        self.batches: dict[int, list[str]] = {}
        self.fail_at: int | None = None
        self.running: StreamingQuery | None = None

    def start(self, **trigger: Any) -> StreamingQuery:
        stream = self._spark.readStream.format("redis_stream").options(**self._options).load()
        writer = stream.writeStream.foreachBatch(self._take).option("checkpointLocation", str(self._folder))
        self.running = writer.trigger(**(trigger or {"availableNow": True})).start()
        return self.running

    def _take(self, frame: DataFrame, number: int) -> None:
        self.batches[number] = [f"{row.stream} {row.id}" for row in frame.select("stream", "id").collect()]
        if number == self.fail_at:
            raise OSError("killed between reading and the note that it was done")

    def run(self, **trigger: Any) -> Counter[str]:
        """Run until all entries are read, and return the rows of all batches."""
        assert self.start(**trigger).awaitTermination(LONG_S)
        return self.rows()

    def rows(self) -> Counter[str]:
        return Counter(row for rows in self.batches.values() for row in rows)


NewQuery = Callable[..., Query]


@pytest.fixture
def query(spark: SparkSession, server: Server, tmp_path: Path) -> Iterator[NewQuery]:
    made: list[Query] = []

    def make(**options: Any) -> Query:
        told = {"url": server.url, **({} if "kind" in options else {"stream": KEY}), **options}
        made.append(Query(spark, tmp_path / "checkpoint", told))
        return made[-1]

    yield make
    for each in made:
        if each.running is not None:
            each.running.stop()


def once(ids: list[str], key: str = KEY) -> Counter[str]:
    return Counter(f"{key} {one}" for one in ids)


def test_what_is_there_now_in_batches_of_a_size(query: NewQuery, server: Server) -> None:
    ids = add(server, numbered(100))
    first = query(max_rows=40)
    assert first.run() == once(ids)
    assert [len(rows) for rows in first.batches.values()] == [40, 40, 20]
    later = add(server, numbered(30, 101))
    second = query(max_rows=40)
    assert second.run() == once(later)
    assert query().run() == Counter()


def test_a_batch_that_was_not_done_is_read_again_as_it_was(query: NewQuery, server: Server) -> None:
    add(server, numbered(100))
    first = query(max_rows=40)
    first.fail_at = 1
    with pytest.raises(StreamingQueryException, match="killed between"):
        first.run()
    add(server, numbered(50, 101))
    second = query(max_rows=40)
    second.run()
    assert second.batches[1] == first.batches[1]
    assert len(first.batches[0]) == 40
    everything = first.batches | second.batches
    assert Counter(row for rows in everything.values() for row in rows) == once(
        [f"{n}-0" for n in range(1, 151)]
    )


def test_queues_that_appear_on_the_way(query: NewQuery, server: Server) -> None:
    def letters(name: str) -> str:
        queue = with_desk(server, lambda desk: desk.queue(name))
        add(server, [("1700000000000-0", LETTER), ("1700000000001-0", LETTER)], queue.keys[6])
        return str(queue.keys[6])

    one = letters("one")
    following = query(kind="dead")
    following.start(processingTime="50 milliseconds")
    ids = ["1700000000000-0", "1700000000001-0"]
    eventually(lambda: following.rows() == once(ids, one), LONG_S)
    two = letters("two")
    eventually(lambda: following.rows() == once(ids, one) + once(ids, two), LONG_S)
    assert following.running is not None
    following.running.stop()
    with_desk(server, delete_one)
    three = letters("three")
    second = query(kind="dead")
    second.run()
    everything = following.batches | second.batches  # the last one may not be committed
    found = Counter(row for rows in everything.values() for row in rows)
    assert found == once(ids, one) + once(ids, two) + once(ids, three)


async def delete_one(desk: Desk) -> None:
    await desk.store.catalogue.delete(await desk.store.catalogue.find("one"))


def test_it_begins_where_it_is_told(query: NewQuery, server: Server) -> None:
    ids = add(server, numbered(10))
    assert query(start="4-0").run() == once(ids[4:])


def test_what_was_trimmed_meanwhile(query: NewQuery, server: Server) -> None:
    add(server, numbered(10))
    query().run()
    add(server, numbered(90, 11))
    server.call("XTRIM", KEY, "MAXLEN", 50)
    with pytest.raises(StreamingQueryException, match="s was read up to 10-0, but now begins at 51-0"):
        query().run()
    assert query(failOnDataLoss="false").run() == once([f"{number}-0" for number in range(51, 101)])


def test_a_wrong_column_and_a_wrong_option(query: NewQuery) -> None:
    with pytest.raises(Exception, match="option max_rows is 'few': use a number from 0 to"):
        query(max_rows="few").start()
