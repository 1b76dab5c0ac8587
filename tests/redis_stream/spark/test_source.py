"""Test `redis_stream` in Spark: found without registration, in SQL, in parallel, and errors."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import spark_partition_id

from services.redis_stream.schema import COLUMNS, Kind
from services.redis_stream.source import spark_schema
from tests.redis_stream.spark.loading import ids, load
from tests.redis_stream.streams import DEPTH, EDGE, KEY, LETTER, QUEUE, add, numbered, with_desk
from tests.servers import Server, free_port
from tests.store.desk import Desk

SAMPLES = "ps:{main}:samples"


def set_up(server: Server, *queues: str) -> dict[str, str]:
    """Create queues and return the keys of their dead letters."""

    async def make(desk: Desk) -> dict[str, str]:
        return {name: (await desk.queue(name)).keys[6] for name in queues}

    found: dict[str, str] = with_desk(server, make)
    return found


def test_it_is_found_and_reads_every_entry_once(spark: SparkSession, server: Server) -> None:
    expected = add(server, numbered(1000))
    frame = load(spark, server, rowsPerPartition=300, pageRows=7)
    assert frame.rdd.getNumPartitions() in range(3, 7)
    assert ids(frame) == expected
    assert frame.schema == spark_schema(Kind.ENTRIES)
    row = frame.where("id = '7-0'").first()
    assert row is not None
    assert (row.stream, row.fields) == (KEY, {"b": b"x"})


def test_short_streams_are_read_by_one_task_together(spark: SparkSession, server: Server) -> None:
    keys = set_up(server, *(f"q{number}" for number in range(9)))
    for place, key in enumerate(keys.values()):
        letters = [(f"{1700000000000 + at}-0", LETTER) for at in range(40 if place == 4 else 3)]
        add(server, letters, key)
    frame = load(spark, server, kind="dead", rowsPerPartition=15)
    rows = frame.select("queue", spark_partition_id().alias("part")).collect()
    assert Counter(row.queue for row in rows) == {f"q{n}": 40 if n == 4 else 3 for n in range(9)}
    parts = {name: {row.part for row in rows if row.queue == name} for name in keys}
    assert parts["q0"] == parts["q1"] == parts["q2"] == parts["q3"]
    assert len(parts["q4"]) in range(2, 7), "a long one is cut"
    assert max(Counter(row.part for row in rows).values()) <= 20
    assert parts["q7"] == parts["q8"]
    apart = load(spark, server, kind="dead", rowsPerPartition=15, minPartitions=2)
    assert apart.rdd.getNumPartitions() >= 18


def test_what_is_added_behind_the_plan_is_not_read(spark: SparkSession, server: Server) -> None:
    expected = add(server, numbered(10))
    assert ids(load(spark, server, start="3-0", end="7-0")) == expected[3:7]
    assert ids(load(spark, server, start='{"s": "8-0"}')) == expected[8:]
    assert ids(load(spark, server, start="10-0")) == []


def test_samples_of_all_kinds_and_what_cannot_be_read(spark: SparkSession, server: Server) -> None:
    set_up(server)
    add(
        server,
        [(f"{at}-0", fields) for at, fields in enumerate((QUEUE, EDGE, DEPTH, {"v": "2"}), 1)],
        SAMPLES,
    )
    rows = load(spark, server, kind="samples").orderBy("id").collect()
    assert [(row.id, row.kind, row.problem) for row in rows] == [
        ("1-0", "queue", None),
        ("2-0", "edge", None),
        ("3-0", "depth", None),
        ("4-0", None, "v is '2': this program reads version 1"),
    ]
    assert (rows[0].refused, rows[0].put[:2], rows[0]["in"]) == ({"full": 3, "paused": 1}, [0, 3], 3)
    assert (rows[2].len, rows[2].qid, rows[2].put) == (2, "4", None)
    assert (rows[3].domain, rows[3].raw) == ("main", {"v": b"2"})
    with pytest.raises(PySparkException, match=r"entry 4-0 of .*: v is '2'.*onMalformed=quarantine"):
        load(spark, server, kind="samples", onMalformed="fail").collect()


def test_dead_letters_of_chosen_queues_and_domains(spark: SparkSession, server: Server) -> None:
    async def make(desk: Desk) -> dict[str, str]:
        far = await desk.queue("far", domain="other")
        return {"far": far.keys[6]} | {
            name: (await desk.queue(name)).keys[6] for name in ("a", "b", "o\udcff")
        }

    for name, key in with_desk(server, make).items():
        add(server, [("1700000000000-0", LETTER | {"body": ascii(name)})], key)

    def bodies(**options: str) -> list[tuple[str, str]]:
        rows = load(spark, server, kind="dead", **options).collect()
        return sorted((row.domain, row.queue) for row in rows)

    everywhere = [("main", "a"), ("main", "b"), ("main", "o\\xff"), ("other", "far")]
    assert bodies() == everywhere
    assert bodies(domain="other") == everywhere[3:]
    assert bodies(queue="a,far") == [everywhere[0], everywhere[3]]
    assert bodies(queue='["a"]', domain="main") == everywhere[:1]


def test_as_much_of_bodies_as_is_wanted(spark: SparkSession, server: Server) -> None:
    keys = set_up(server, "orders")
    add(server, [("1-0", LETTER | {"body": "hello"})], keys["orders"])
    for bodies, shown in (("full", b"hello"), ("none", None), ("2", b"he"), ("99", b"hello")):
        (row,) = load(spark, server, kind="dead", bodies=bodies).collect()
        assert (row.size, row.body) == (5, shown)


def test_nothing_there_is_no_rows(spark: SparkSession, server: Server) -> None:
    assert load(spark, server).count() == 0
    set_up(server, "orders")
    assert load(spark, server, kind="dead").count() == 0
    assert load(spark, server, kind="samples").count() == 0
    add(server, numbered(3))
    server.call("XTRIM", KEY, "MAXLEN", 0)
    assert load(spark, server).count() == 0


def test_fewer_columns(spark: SparkSession, server: Server) -> None:
    add(server, numbered(3))
    reader = spark.read.format("redis_stream").options(url=server.url, stream=KEY)
    assert tuple(reader.schema("id string, stream string").load().collect()[0]) == ("1-0", KEY)
    with pytest.raises(
        PySparkException, match="kind 'entries' has no column size bigint; it has stream string"
    ):
        reader.schema("id string, size long").load().collect()


def test_a_password_in_a_file(spark: SparkSession, own_server: Server, tmp_path: Path) -> None:
    add(own_server, numbered(3))
    own_server.call("CONFIG", "SET", "requirepass", "p@ss word")
    file = tmp_path / "password"
    file.write_text("p@ss word\n")
    assert load(spark, own_server, passwordFile=file).count() == 3
    with pytest.raises(PySparkException, match=r"the store cannot be used now: .*[Aa]uthentication"):
        load(spark, own_server).collect()


def test_sql(spark: SparkSession, server: Server) -> None:
    add(server, numbered(30))
    spark.sql(
        f"CREATE TEMPORARY VIEW v USING redis_stream OPTIONS (url '{server.url}', stream 's', rowsPerPartition 10)"
    )
    try:
        (row,) = spark.sql(
            "SELECT count(*) n, min(at) first, sum(length(fields['b'])) octets FROM v"
        ).collect()
        assert (row.n, str(row.first), row.octets) == (30, "1970-01-01 00:00:00.001000", 30)
    finally:
        spark.catalog.dropTempView("v")


def test_a_task_that_fails_and_is_tried_again_gives_each_row_once(
    spark: SparkSession, server: Server, tmp_path: Path
) -> None:
    expected = add(server, numbered(300))

    def fail_once(batches):  # type: ignore[no-untyped-def]
        for made in batches:
            yield made
            mark = tmp_path / str(made["id"][0])
            if not mark.exists():
                mark.touch()
                raise OSError("for a try")

    frame = load(spark, server, rowsPerPartition=100, pageRows=20)
    assert ids(frame.mapInArrow(fail_once, frame.schema)) == expected
    assert len(list(tmp_path.iterdir())) >= 2


# errors


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"kind": "dead", "queue": "orders"}, "unknown queue 'orders'"),
        ({"kind": "dead", "domain": "elsewhere"}, "unknown domain 'elsewhere'; known domains: main"),
    ],
)
def test_a_wrong_option_is_told_in_words(
    spark: SparkSession, server: Server, options: dict[str, str], why: str
) -> None:
    set_up(server)
    with pytest.raises(PySparkException) as caught:
        load(spark, server, **options).collect()
    assert why in str(caught.value)


def test_a_wrong_option_is_an_error_of_the_query(spark: SparkSession, server: Server) -> None:
    with pytest.raises(AnalysisException, match="unknown option 'colour'"):
        load(spark, server, colour="red")


def test_a_store_that_was_not_set_up_or_is_no_stream(spark: SparkSession, server: Server) -> None:
    with pytest.raises(PySparkException, match="set it up with `penstock store init`"):
        load(spark, server, kind="dead").collect()
    server.call("SET", KEY, "x")
    with pytest.raises(PySparkException, match="s is not a stream"):
        load(spark, server).collect()


def test_a_store_that_is_not_there(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match="the store cannot be used now"):
        load(spark, f"redis://127.0.0.1:{free_port()}", connectTimeoutS="0.2").collect()


def test_what_was_trimmed_fails_or_is_told_of(spark: SparkSession, server: Server) -> None:
    add(server, numbered(100))
    server.call("XTRIM", KEY, "MAXLEN", 50)
    assert load(spark, server).count() == 50
    with pytest.raises(
        PySparkException, match=r"s was read up to 5-0, but now begins at 51-0: .*failOnDataLoss=false"
    ):
        load(spark, server, start="5-0").collect()
    assert load(spark, server, start="5-0", failOnDataLoss="false").count() == 50


@pytest.mark.parametrize("fail", ["true", "false"])
def test_what_is_trimmed_between_planning_and_reading(spark: SparkSession, server: Server, fail: str) -> None:
    add(server, numbered(100))
    frame = load(spark, server, start="5-0", failOnDataLoss=fail, rowsPerPartition=30)
    planned = frame.rdd  # its partitions are fixed now
    assert planned.getNumPartitions() > 1
    server.call("XTRIM", KEY, "MAXLEN", 30)
    if fail == "false":
        assert planned.count() == 30
    else:
        with pytest.raises(Exception, match="DataLoss: s was to be read from"):
            planned.count()


def test_a_schema_says_what_the_page_says() -> None:
    for kind in Kind:
        assert [field.name for field in spark_schema(kind)] == [column.name for column in COLUMNS[kind]]
