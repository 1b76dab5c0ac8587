"""Find what runs have read of a stream that was restored: a part of it, followed by new entries."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from services.analytics.archive_files import Foreign, named
from services.analytics.files import Files
from services.analytics.hours import hour_at, hour_path, hours_below, later
from services.redis_stream.schema import Kind
from services.store.catalogue import BEGINNING, StreamReader, parse_id

ASKED = 16  # ids at a time; their entries are transferred too
LATEST_MS = 253_402_300_799_999  # the year 9999; ids may exceed it


class Overlap:
    """The overlap of one stream with the archive."""

    def __init__(self, files: Files, kind: Kind, key: str) -> None:
        self._files = files
        self._root = f"archive/{kind}"
        self._key = key
        self._hours = hours_below(files, self._root)
        self._known: dict[str, set[str]] = {}  # ids by hour, of hours read so far

    def end(self, reading: StreamReader, last: str) -> tuple[str, int]:
        """Return the last entry in the archive and the number of entries after it. Raises StoreError, OutputError.

        last: last id of the stream. Entries older than the whole archive count as read.
        """
        place, number = last, 0
        while found := reading.ids_before(self._key, place, ASKED):
            for identifier in found:
                if self._has(identifier):
                    return identifier, number
                number += 1
            place = f"({found[-1]}"
        return BEGINNING, number

    def _has(self, identifier: str) -> bool:
        """Return whether the archive has the entry. A letter's hour is that of its id or the one before."""
        ms, _ = parse_id(identifier)
        hour = hour_at(min(ms, LATEST_MS))
        if self._hours and hour < min(self._hours):
            return True
        return any(identifier in self._ids(later(hour, by)) for by in (0, -1))

    def _ids(self, hour: str) -> set[str]:
        if hour not in self._hours:
            return set()
        if hour not in self._known:
            self._known[hour] = {
                identifier
                for path in self._files.walk(f"{self._root}/{hour_path(hour)}")
                for identifier in self._of_stream(path)
            }
        return self._known[hour]

    def _of_stream(self, path: str) -> list[str]:
        octets = self._files.read_octets(path)
        with named(path):
            rows = pq.ParquetFile(pa.BufferReader(octets)).read(["stream", "id"])
            if len(rows.column_names) < 2:
                raise Foreign("it has no columns stream and id; it was not written by a run")
        found: list[str] = rows.filter(pc.equal(rows["stream"], self._key))["id"].to_pylist()
        return found
