"""The data source `redis_stream`: streams of a Penstock store as tables, for batches and streaming queries.

    spark.dataSource.register(RedisStream)
    spark.read.format("redis_stream").option("url", "redis://127.0.0.1:6379").option("kind", "dead").load()

It only reads: nothing is acknowledged or trimmed, and edges are affected only by the load on the server.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from services.redis_stream.finding import check_places, open_store, streams
from services.redis_stream.following import Following
from services.redis_stream.options import OptionError, Options
from services.redis_stream.pieces import parts, read
from services.redis_stream.schema import Kind, arrow_schema

NAME = "redis_stream"


def spark_schema(kind: Kind) -> StructType:
    """Return the schema of the table of this kind."""
    return from_arrow_schema(arrow_schema(kind))


class RedisStream(DataSource):
    """The data source of `format("redis_stream")`, for batches and streaming queries.

    Spark finds it by its name where Penstock is installed with the extra `analytics`; `spark.dataSource.register` is
    needed only elsewhere. Spark calls all methods. They raise OptionError for options that cannot be used.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format, `redis_stream`."""
        return NAME

    def schema(self) -> StructType:
        """Return the columns, which depend on the option `kind`; times are UTC."""
        return spark_schema(self._parsed().kind)

    def reader(self, schema: StructType) -> RedisReader:
        """Return a reader of a batch: up to the end of the streams when the query is planned.

        Args:
            schema: The columns to read, some or all of those of `schema`.
        """
        options = self._parsed()
        return RedisReader(options, _names_of(schema, options.kind))

    def streamReader(self, schema: StructType) -> Following:
        """Return a reader of a streaming query, whose offsets are ids of entries for each stream.

        Args:
            schema: The columns to read, some or all of those of `schema`.
        """
        options = self._parsed()
        return Following(options, _names_of(schema, options.kind))

    def _parsed(self) -> Options:
        return Options.parse(dict(self.options))


def _names_of(schema: StructType, kind: Kind) -> list[str]:
    """Return the names of the requested columns. Raises OptionError for unknown ones."""
    known = {each.name: each.dataType for each in spark_schema(kind)}
    for each in schema:
        if known.get(each.name) != each.dataType:
            there = ", ".join(f"{name} {known[name].simpleString()}" for name in known)
            raise OptionError(
                f"kind '{kind}' has no column {each.name} {each.dataType.simpleString()}; it has {there}"
            )
    return [each.name for each in schema]


class RedisReader(DataSourceReader):
    """A reader of a batch, up to the end of the streams when it is planned."""

    def __init__(self, options: Options, names: list[str]) -> None:
        self._options = options
        self._names = names

    def partitions(self) -> Sequence[InputPartition]:
        """Plan the partitions."""
        with open_store(self._options) as reading:
            check_places(reading, self._options)
            return parts(reading, self._options, streams(reading, self._options))

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Yield the record batches of a partition."""
        return read(self._options, partition, self._names)
