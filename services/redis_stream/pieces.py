"""Turn stretches into Spark's partitions, and read partitions."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import InputPartition

from services.redis_stream.columns import Entry, Origin, batch
from services.redis_stream.finding import open_store, tell_of_loss
from services.redis_stream.losses import is_told_of, missed
from services.redis_stream.options import Options
from services.redis_stream.stretches import Stream, Stretch, cut
from services.store.catalogue import StreamReader

# pages in one batch: large batches cost less per row, large pages would block the server
TOGETHER = 16
# or, with the last page, this many octets: building a batch takes several times its octets
TOGETHER_OCTETS = 16 << 20


class Malformed(Exception):
    """An entry cannot be read, and onMalformed is fail."""


class Part(InputPartition):
    """A partition of one or more stretches; plain values, as it is sent to other processes."""

    def __init__(self, stretches: list[Stretch]) -> None:
        super().__init__(stretches)
        self.stretches = stretches


def parts(reading: StreamReader, options: Options, found: Iterable[Stream]) -> list[Part]:
    """Return the partitions of all streams in order. Short stretches share a partition to save tasks."""
    cuts = (cut(reading, stream, options.rows_per_partition, options.min_partitions) for stream in found)
    stretches = [stretch for each in cuts for stretch in each]
    if options.min_partitions > 1:
        return [Part([stretch]) for stretch in stretches]
    return [Part(together) for together in _together(stretches, options.rows_per_partition)]


def _together(stretches: Iterable[Stretch], rows: int) -> Iterator[list[Stretch]]:
    """Yield groups of neighbours with at most `rows` rows together."""
    held, number = list[Stretch](), 0.0
    for stretch in stretches:
        if held and number + stretch.rows > rows:
            yield held
            held, number = [], 0.0
        held.append(stretch)
        number += stretch.rows
    if held:
        yield held


def read(
    options: Options, partition: InputPartition | None, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the entries of a partition; without planned partitions, Spark reads one that is None.

    Raises DataLoss, Malformed, StoreError.
    """
    if isinstance(partition, Part):
        with _uncollected(), open_store(options) as reading:
            for stretch in partition.stretches:
                yield from _batches(reading, options, stretch, names)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Disable garbage collection: entries have no cycles, and scanning them takes a fifth longer."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _batches(
    reading: StreamReader, options: Options, stretch: Stretch, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    stream = stretch.stream
    origin = Origin(stream.kind, stream.key, stream.domain, stream.queue, stream.qid, options.bodies)
    bounds = (stretch.start, stretch.end)
    watched = is_told_of(stream.kind)
    held, pages, octets = list[Entry](), 0, 0
    for page in reading.pages(stream.key, *bounds, options.page_rows, is_watched=watched):
        if why := missed(stretch, page):
            tell_of_loss(options, why)
        held, pages, octets = [*held, *page.entries], pages + 1, octets + page.octets
        if pages == TOGETHER or octets >= TOGETHER_OCTETS:
            made = _made(options, origin, held, names)
            held, pages, octets = [], 0, 0  # free them while the batch is consumed
            yield made
    if held:
        yield _made(options, origin, held, names)


def _made(options: Options, origin: Origin, entries: list[Entry], names: Sequence[str]) -> pa.RecordBatch:
    made = batch(origin, entries)
    if options.fail_on_malformed:
        _refuse_malformed(made)
    return made.select(names) if names != made.schema.names else made


def _refuse_malformed(made: pa.RecordBatch) -> None:
    if "problem" in made.schema.names and made["problem"].null_count < len(made):
        row = made.filter(pc.is_valid(made["problem"])).slice(0, 1).to_pylist()[0]
        raise Malformed(
            f"entry {row['id']} of {row['stream']} cannot be read: {row['problem']}; set onMalformed=quarantine to "
            "get such entries as rows with a problem"
        )
