"""Compute the tables of an hour, or of some of its queues, from the hour's files."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.fs import FileSystem

from services.analytics.aggregates.deaths import Deaths, Failures, Origins
from services.analytics.aggregates.depths import STATES, Depths
from services.analytics.aggregates.repeats import NAMED_BY, repeats, suspects
from services.analytics.aggregates.traffic import HISTOGRAMS, Edges, Traffic
from services.analytics.archive_files import row_groups
from services.analytics.settings import Shape
from services.analytics.tables import COUNTERS, SUMS
from services.redis_stream.schema import Kind

# columns with few different texts, read dictionary-encoded
FEW = ("stream", "domain", "queue", "qid", "kind", "edge", "process", "reason", "origin", "pattern")
OF_DEAD = (
    *("stream", "id", "domain", "queue", "died", "enqueued", "reason", "error", "origin", "edge", "acquired"),
    *("redriven", "size", "fingerprint", "pattern"),
)
OF_DEPTHS = ("kind", "id", "domain", "queue", "qid", "age_ms", *STATES, *COUNTERS)
OF_TRAFFIC = ("at", "ms", "edge", *SUMS, *HISTOGRAMS, "refused", "refused_puts")
OF_EDGES = ("connections", *Edges.FLOWS)
OF_SAMPLES = dict.fromkeys((*NAMED_BY, *OF_DEPTHS, *OF_TRAFFIC, *OF_EDGES))
Tables = dict[str, pa.Table]


@dataclass(frozen=True, slots=True)
class Share:
    """Some queues of an hour and kind: the work of one task. Files are paths below `root`."""

    kind: Kind
    hour: str
    files: tuple[str, ...]
    before: tuple[str, ...] = ()  # of samples: files of the hour before
    number: int = 0
    shares: int = 1


def tables(files: FileSystem, root: str, share: Share, shape: Shape) -> Tables:
    """Return the tables by name, rows unsorted; edges only in the first share."""
    reading = _Reading(files, root, share)
    return _of_dead(reading, shape) if share.kind is Kind.DEAD else _of_samples(reading, share, shape)


@dataclass(frozen=True, slots=True)
class _Reading:
    files: FileSystem
    root: str
    share: Share

    def chunks(self, paths: Sequence[str], columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the rows of one row group at a time; columns missing in an older file are null."""
        few = [name for name in columns if name in FEW]
        for path in paths:
            yield from row_groups(self.files, self.root, path, self.share.kind, columns, few)

    def mine(self, rows: pa.Table) -> pa.Table:
        """Return the rows of the queues of this share. Queues of one name are in one share for all domains."""
        if self.share.shares == 1:
            return rows
        names = rows["queue"].combine_chunks().dictionary
        own = [
            zlib.crc32(name.encode()) % self.share.shares == self.share.number for name in names.to_pylist()
        ]
        wanted = pa.array(np.flatnonzero(own), pa.int32())
        return rows.filter(pc.is_in(rows["queue"].combine_chunks().indices, value_set=wanted))


def _of_dead(reading: _Reading, shape: Shape) -> Tables:
    deaths, origins, failures = Deaths(), Origins(), Failures()
    for chunk in reading.chunks(reading.share.files, OF_DEAD):
        rows = reading.mine(chunk)
        for each in (deaths, origins, failures):
            each.add(rows)
    return {
        "deaths": deaths.result(),
        "origins": origins.result(shape.top),
        "failures": failures.result(shape.top),
    }


def _of_samples(reading: _Reading, share: Share, shape: Shape) -> Tables:
    traffic, edges, depths = Traffic(), Edges(), Depths()
    again = _repeats(reading)
    for chunk in reading.chunks(share.before, OF_DEPTHS):
        looks = _of_kind(chunk, "depth")
        depths.look(looks)
        depths.add(reading.mine(looks), is_before=True)
    for chunk in reading.chunks(share.files, [*OF_SAMPLES]):
        rows = _without(chunk, again)
        traffic.add(reading.mine(_of_kind(rows, "queue")))
        edges.add(_of_kind(rows, "edge"))
        looks = _of_kind(rows, "depth")
        depths.look(looks)
        depths.add(reading.mine(looks), is_before=False)
    found = {"traffic": traffic.result(shape.objective), "depths": depths.result()}
    return found if share.number else {**found, "edges": edges.result()}


def _of_kind(rows: pa.Table, kind: str) -> pa.Table:
    return rows.filter(pc.equal(rows["kind"], kind))


def _repeats(reading: _Reading) -> pa.Table | None:
    """Return stream and id of repeated samples, or None. The first of them may be in the hour before."""
    paths = (*reading.share.before, *reading.share.files)
    named = [_own(chunk).select(NAMED_BY) for chunk in reading.chunks(paths, NAMED_BY)]
    doubtful = pa.array(suspects(pa.concat_tables(named).unify_dictionaries()))
    if not len(doubtful):
        return None
    del named
    whole = [_own(chunk) for chunk in reading.chunks(paths, [*NAMED_BY, "id"])]
    return repeats(pa.concat_tables(whole).unify_dictionaries().take(doubtful))


def _own(samples: pa.Table) -> pa.Table:
    """Return the samples that processes sent about themselves; `depth` samples of queues are never repeated."""
    return samples.filter(pc.not_equal(samples["kind"], "depth"))


def _without(rows: pa.Table, again: pa.Table | None) -> pa.Table:
    if again is None:
        return rows
    doubtful = np.flatnonzero(pc.is_in(rows["id"], value_set=again["id"].combine_chunks()).to_numpy())
    named = set(zip(again["stream"].to_pylist(), again["id"].to_pylist(), strict=True))
    streams, ids = (rows[name].take(pa.array(doubtful)).to_pylist() for name in ("stream", "id"))
    kept = np.ones(len(rows), bool)
    kept[[row for row, *name in zip(doubtful, streams, ids, strict=True) if tuple(name) in named]] = False
    return rows.filter(pa.array(kept))
