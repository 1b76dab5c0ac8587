"""Stream reader of `redis_stream`: offsets are ids by stream; new queues are found while the query runs.

The range between two offsets can be read repeatedly until it is trimmed: a restarted batch reads the same. Nothing
depends on `commit`, as the last one of a query may never come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from services.redis_stream.finding import check_places, known_streams, open_store, streams, tell_of_loss
from services.redis_stream.losses import lost, shortened
from services.redis_stream.options import Options
from services.redis_stream.pieces import parts, read
from services.redis_stream.stretches import Stream
from services.store.catalogue import BEGINNING, StreamReader, parse_id

Convert = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
Offsets = dict[str, str]  # id of the last entry read, by the stream's key; and SERVED
# The key, which is no stream's, of the last stream with a share in a batch that had too few rows for all.
SERVED = ""


class Following(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader of a streaming query."""

    def __init__(self, options: Options, names: list[str], convert: Convert | None = None) -> None:
        """Make a reader of these columns. `convert` is applied to the batches of each partition; it must pickle."""
        self._options = options
        self._names = names
        self._convert = convert
        self._frozen: Offsets | None = None  # ends of all streams with the trigger availableNow

    def initialOffset(self) -> Offsets:
        """Return where existing streams begin; streams created later are read from their beginning."""
        with open_store(self._options) as reading:
            if (
                self._convert is None
            ):  # a program that converts has made the options, and queues may have gone since
                check_places(reading, self._options)
            if self._options.start == BEGINNING:
                return {}
            keys = [stream.key for stream in known_streams(reading, self._options)]
        return {key: self._options.start_of(key) for key in keys}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit of a batch, by the option max_rows."""
        return ReadMaxRows(self._options.max_rows) if self._options.max_rows else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Freeze the ends of all streams for the trigger availableNow."""
        with open_store(self._options) as reading:
            self._frozen = self._ends(reading)

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        """Return the end of the next batch."""
        with open_store(self._options) as reading:
            ends = self._ends(reading) if self._frozen is None else self._frozen
            newer = {key: end for key, end in ends.items() if _is_later(end, start.get(key, BEGINNING))}
            if isinstance(limit, ReadMaxRows):
                newer = self._limited(reading, start, newer, limit.max_rows)
            return start | newer

    def reportLatestOffset(self) -> Offsets:
        """Return the current ends of all streams."""
        with open_store(self._options) as reading:
            return self._ends(reading)

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        """Return the partitions between two offsets."""
        with open_store(self._options) as reading:
            return parts(reading, self._options, self._between(reading, start, end))

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Yield the record batches of a partition."""
        batches = read(self._options, partition, self._names)
        return self._convert(batches) if self._convert else batches

    def _between(self, reading: StreamReader, start: Offsets, end: Offsets) -> Iterator[Stream]:
        for stream in known_streams(reading, self._options):
            place = start.get(stream.key, BEGINNING)
            found = replace(stream, start=place, end=end.get(stream.key, place))
            if _is_later(found.end, found.start):
                state = reading.state(stream.key)
                if why := lost(found, state) or shortened(found, state):
                    tell_of_loss(self._options, why)
                yield found

    def _ends(self, reading: StreamReader) -> Offsets:
        """Return the last id, or the end in the options, of every stream that has entries."""
        return {stream.key: stream.end for stream in streams(reading, self._options, lambda _: BEGINNING)}

    @staticmethod
    def _limited(reading: StreamReader, start: Offsets, newer: Offsets, rows: int) -> Offsets:
        """Return offsets of at most `rows` rows: each stream has its share, and passes on what it does not use.

        Streams without a share in the previous batch come first.
        """
        found: Offsets = {}
        served = start.get(SERVED, "")
        for place, key in enumerate(sorted(newer, key=lambda key: (key <= served, key))):
            share, end = max(1, rows // (len(newer) - place)), newer[key]
            taken, last = reading.nth_behind(key, start.get(key, BEGINNING), end, share)
            rows -= taken
            if taken:
                found |= {key: last if taken == share else end, SERVED: key}
            if rows <= 0:
                break
        return found


def _is_later(one: str, other: str) -> bool:
    return parse_id(one) > parse_id(other)
