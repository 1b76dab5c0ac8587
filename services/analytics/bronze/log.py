"""Find what was appended to a bronze table since a version, by the table's log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from services.analytics import delta, output
from services.analytics.tables import Table

INGEST = "ingest "  # begins the name under which the job commits; then the id of the query follows


@dataclass(frozen=True, slots=True)
class Appended:
    """What the commits after a version have added."""

    version: int  # the newest one
    rows: int = 0  # of the commits of this name
    hours: frozenset[str] = frozenset()  # 'YYYY-MM-DDTHH', with new rows
    unreadable: frozenset[str] = frozenset()  # of them, those that may have rows with a problem


def appended(place: str, table: Table, since: int, name: str = INGEST) -> Appended:
    """Return what was appended after a version. Files that maintenance joined do not count.

    Args:
        place: the output.
        table: a bronze table.
        since: the version; -1: all.
        name: how the names of the commits begin whose rows are counted.

    Raises:
        TableError, OutputError.
    """
    found = delta.opened(place, table)
    version = found.version()
    if since > version:  # the table was removed and made again
        since = -1
    rows, hours, unreadable = 0, set[str](), set[str]()
    for number in range(since + 1, version + 1):
        actions = _actions(place, table, number)
        if actions is None:  # Delta Lake removes parts of the log after 30 days
            return Appended(version, 0, every := _hours(found), every)
        is_own = any(each["txn"]["appId"].startswith(name) for each in actions if "txn" in each)
        for each in _files(actions):
            hour = "{day}T{hour}".format(**each["partitionValues"])
            stats = json.loads(each.get("stats") or "{}")
            rows += stats.get("numRecords", 0) if is_own else 0
            hours.add(hour)
            if stats.get("nullCount", {}).get("problem") != stats.get("numRecords"):
                unreadable.add(hour)
    return Appended(version, rows, frozenset(hours), frozenset(unreadable))


def _actions(place: str, table: Table, number: int) -> list[dict[str, Any]] | None:
    """Return the actions of a commit, as the protocol of Delta Lake defines them; None if its file was removed."""
    octets = output.read(place, "/".join((*table.folder, table.name, "_delta_log", f"{number:020}.json")))
    return None if octets is None else [json.loads(line) for line in octets.splitlines()]


def _files(actions: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the added files whose rows are new."""
    return (each["add"] for each in actions if "add" in each and each["add"]["dataChange"])


def all_hours(place: str, table: Table) -> frozenset[str]:
    """Return all hours with rows, 'YYYY-MM-DDTHH'. Raises TableError."""
    return _hours(delta.opened(place, table))


def _hours(found: DeltaTable) -> frozenset[str]:
    files = pa.table(found.get_add_actions(flatten=True))
    return frozenset(f"{row['partition.day']}T{row['partition.hour']}" for row in files.to_pylist())
