"""Stretches as Spark's partitions, and what reading one gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import InputPartition

from services.analytics.columns import Origin, batch
from services.analytics.finding import open_store, tell_of_loss
from services.analytics.losses import is_told_of, missed
from services.analytics.options import Options
from services.analytics.stretches import Stream, Stretch, cut
from services.store.reading import Reading


class Malformed(Exception):
    """An entry could not be read, and onMalformed is fail."""


class Part(InputPartition):
    """One stretch: nothing but plain values, as it goes to another process."""

    def __init__(self, stretch: Stretch) -> None:
        super().__init__(stretch)
        self.stretch = stretch


def parts(reading: Reading, options: Options, found: Iterable[Stream]) -> list[Part]:
    """Stretches of all of them, in order."""
    cuts = (cut(reading, stream, options.rows_per_partition, options.min_partitions) for stream in found)
    return [Part(stretch) for stretches in cuts for stretch in stretches]


def read(
    options: Options, partition: InputPartition | None, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """All entries of a stretch; where nothing was planned Spark reads one partition that is None.

    Raises DataLoss, Malformed, StoreError.
    """
    if isinstance(partition, Part):
        yield from _batches(options, partition.stretch, names)


def _batches(options: Options, stretch: Stretch, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    stream = stretch.stream
    origin = Origin(stream.kind, stream.key, stream.domain, stream.queue, stream.qid, options.bodies)
    with open_store(options) as reading:
        bounds = (stretch.start, stretch.end)
        for page in reading.pages(stream.key, *bounds, options.page_rows, is_watched=is_told_of(stream.kind)):
            if why := missed(stretch, page):
                tell_of_loss(options, why)
            if not page.entries:
                return
            made = batch(origin, page.entries)
            if options.fail_on_malformed:
                _refuse_malformed(made)
            yield made.select(names) if names != made.schema.names else made


def _refuse_malformed(made: pa.RecordBatch) -> None:
    if "problem" in made.schema.names and made["problem"].null_count < len(made):
        row = made.filter(pc.is_valid(made["problem"])).slice(0, 1).to_pylist()[0]
        raise Malformed(
            f"entry {row['id']} of {row['stream']} cannot be read: {row['problem']}; with onMalformed=quarantine such "
            "entries are rows with a problem"
        )
