"""Stretches as Spark's partitions, and what reading one gives."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import InputPartition

from services.analytics.columns import Entry, Origin, batch
from services.analytics.finding import open_store, tell_of_loss
from services.analytics.losses import is_told_of, missed
from services.analytics.options import Options
from services.analytics.stretches import Stream, Stretch, cut
from services.store.catalogue import StreamReader

# pages in one batch: a server is not to be asked for more at a time, but of more a row costs less
TOGETHER = 16
TOGETHER_OCTETS = (
    16 << 20
)  # or, with the last page, so many: a batch takes several times its octets while it is made


class Malformed(Exception):
    """An entry could not be read, and onMalformed is fail."""


class Part(InputPartition):
    """Stretches, one or several: nothing but plain values, as it goes to another process."""

    def __init__(self, stretches: list[Stretch]) -> None:
        super().__init__(stretches)
        self.stretches = stretches


def parts(reading: StreamReader, options: Options, found: Iterable[Stream]) -> list[Part]:
    """Stretches of all of them, in order. Short ones are read together: a task of its own costs more than they do."""
    cuts = (cut(reading, stream, options.rows_per_partition, options.min_partitions) for stream in found)
    stretches = [stretch for each in cuts for stretch in each]
    if options.min_partitions > 1:
        return [Part([stretch]) for stretch in stretches]
    return [Part(together) for together in _together(stretches, options.rows_per_partition)]


def _together(stretches: Iterable[Stretch], rows: int) -> Iterator[list[Stretch]]:
    """Neighbours, as long as they have no more rows than one is to have."""
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
    """All entries of its stretches; where nothing was planned Spark reads one partition that is None.

    Raises DataLoss, Malformed, StoreError.
    """
    if isinstance(partition, Part):
        with _uncollected(), open_store(options) as reading:
            for stretch in partition.stretches:
                yield from _batches(reading, options, stretch, names)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Entries are lists of octets, without cycles: looked through for some, they take a fifth longer."""
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
            held, pages, octets = [], 0, 0  # not to be kept while the batch is looked at
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
