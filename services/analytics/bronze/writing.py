"""Write cleaned rows to Parquet files of a bronze table, which become part of it when their batch is committed."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from services.analytics import output
from services.analytics.cleaning.cleaning import Cleaning
from services.analytics.hours import HOUR
from services.redis_stream.schema import LONG, TEXT

MOST_OCTETS = 64 << 20  # of rows in memory; more are written in several rounds
FILES = pa.schema(
    [("path", TEXT), ("octets", LONG), ("day", TEXT), ("hour", TEXT), ("rows", LONG), ("unreadable", LONG)]
)


@dataclass(frozen=True)
class Writing:
    """A function that cleans the rows of one partition and writes them. It must pickle: tasks call it."""

    output: str
    folder: str  # of the table, in the output
    cleaning: Cleaning

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows, and yield one row for each file, as in FILES. Raises OutputError."""
        held, octets = list[pa.RecordBatch](), 0
        for each in map(self.cleaning, batches):
            held.append(each)
            octets += each.nbytes
            if octets >= MOST_OCTETS:
                yield self._written(held)
                held, octets = [], 0
        if held:
            yield self._written(held)

    def _written(self, held: list[pa.RecordBatch]) -> pa.RecordBatch:
        rows = pa.Table.from_batches(held)
        found = [self._file(day, hour, of_hour) for day, hour, of_hour in _by_hour(rows)]
        return pa.RecordBatch.from_pylist(found, FILES)

    def _file(self, day: str, hour: str, rows: pa.Table) -> dict[str, object]:
        path = f"day={day}/hour={hour}/{uuid.uuid4()}.zstd.parquet"
        octets = output.write_parquet(self.output, f"{self.folder}/{path}", rows)
        unreadable = len(rows) - rows["problem"].null_count
        return {
            "path": path,
            "octets": octets,
            "day": day,
            "hour": hour,
            "rows": len(rows),
            "unreadable": unreadable,
        }


def _by_hour(rows: pa.Table) -> Iterator[tuple[str, str, pa.Table]]:
    """Yield the rows of each hour, in their order, without the columns of the partition."""
    hours = pc.binary_join_element_wise(rows["day"], rows["hour"], "T").combine_chunks().dictionary_encode()
    plain = rows.drop_columns([*HOUR])
    for number, hour in enumerate(hours.dictionary.to_pylist()):
        one = plain if len(hours.dictionary) == 1 else plain.filter(pc.equal(hours.indices, number))
        yield hour[:10], hour[11:], one
