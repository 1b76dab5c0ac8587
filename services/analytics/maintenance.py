"""Remove old rows, join small files (OPTIMIZE) and remove unused ones (VACUUM), once a day, without Spark."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator

from services.analytics import delta
from services.analytics.hours import hour_at
from services.analytics.settings import Settings
from services.analytics.tables import ALL, Table

DAY_MS = 86_400_000
log = logging.getLogger(__name__)


def first_day(settings: Settings, now_ms: int) -> str:
    """Return the first day that is kept, YYYY-MM-DD; '' if all are."""
    days = settings.retention_days
    return hour_at(now_ms - days * DAY_MS)[:10] if days else ""


def is_due(last_ms: int, now_ms: int) -> bool:
    """Return whether a day has begun since the last maintenance, or the first run. Both in ms since 1970."""
    return now_ms // DAY_MS > last_ms // DAY_MS


def maintain(settings: Settings, now_ms: int, newest: int) -> None:
    """Carry out the retention and maintenance of all tables. Raises TableError.

    What OPTIMIZE and VACUUM have not begun within `maintenance_s` each is left to the next day.

    Args:
        settings: all settings.
        now_ms: the store's time.
        newest: the number of the newest run, which is kept.
    """
    if first := first_day(settings, now_ms):
        first_ms = now_ms - settings.retention_days * DAY_MS
        for table in ALL:
            old = f"day < '{first}'" if table.partitions else f"now_ms < {first_ms} AND number < {newest}"
            with delta.changed(settings.output, table) as found:
                found.delete(old)
    _limited("OPTIMIZE", _join, settings)
    _limited("VACUUM", _vacuum, settings)


def _limited(name: str, work: Callable[[str, Table], Iterator[None]], settings: Settings) -> None:
    """Do the steps of the work on all tables that begin in time."""
    end = time.monotonic() + settings.maintenance_s
    for table in ALL:
        for _ in work(settings.output, table):
            if time.monotonic() >= end:
                text = f"{name} did not end within --maintenance-s {settings.maintenance_s:g}; it goes on tomorrow"
                log.warning(text, extra={"action": "maintenance"})
                return


def _join(output: str, table: Table) -> Iterator[None]:
    """Join the files of one day after the other."""
    with delta.changed(output, table) as found:
        if not table.partitions:
            found.optimize.compact()
        for day in delta.days_with_small_files(found) if table.partitions else ():
            found.optimize.compact(partition_filters=[("day", "=", day)])
            yield


def _vacuum(output: str, table: Table) -> Iterator[None]:
    """Remove the files that no version of the last 7 days has."""
    with delta.changed(output, table) as found:
        found.vacuum(dry_run=False, full=True)  # also what killed runs left
    yield
