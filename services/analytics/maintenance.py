"""Remove old rows, join small files (OPTIMIZE) and remove unused ones (VACUUM), once a day."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable

from pyspark.sql import SparkSession

from services.analytics.hours import hour_at
from services.analytics.settings import Settings

DAY_MS = 86_400_000
log = logging.getLogger(__name__)


def first_day(settings: Settings, now_ms: int) -> str:
    """Return the first day that is kept, YYYY-MM-DD; '' if all are."""
    days = settings.retention_days
    return hour_at(now_ms - days * DAY_MS)[:10] if days else ""


def is_due(last_ms: int, now_ms: int) -> bool:
    """Return whether a day has begun since the last maintenance, or the first run. Both in ms since 1970."""
    return now_ms // DAY_MS > last_ms // DAY_MS


def maintain(spark: SparkSession, settings: Settings, now_ms: int, tables: Iterable[str]) -> None:
    """Carry out the retention and maintenance of tables.

    What does not end within `maintenance_s` is cancelled, which harms nothing, and tried again the next day.

    Args:
        spark: The session.
        settings: The retention, and the time limit of OPTIMIZE and of VACUUM.
        now_ms: The store's time.
        tables: Paths of tables with the column `day`.
    """
    places = list(tables)
    if first := first_day(settings, now_ms):
        for place in places:
            spark.sql(f"DELETE FROM delta.`{place}` WHERE day < '{first}'")
    for command in ("OPTIMIZE", "VACUUM"):
        _limited(spark, command, [f"{command} delta.`{place}`" for place in places], settings.maintenance_s)


def _limited(spark: SparkSession, name: str, commands: list[str], limit_s: float) -> None:
    end, context = time.monotonic() + limit_s, spark.sparkContext
    timer = threading.Timer(limit_s, context.cancelJobsWithTag, (name,))
    timer.start()
    context.addJobTag(name)
    try:
        for command in commands:
            if time.monotonic() < end:
                spark.sql(command)
    except Exception:
        if time.monotonic() < end:
            raise
    finally:
        timer.cancel()
        context.removeJobTag(name)
    if time.monotonic() >= end:
        text = f"{name} did not end within --maintenance-s {limit_s:g}; it is tried again tomorrow"
        log.warning(text, extra={"action": "maintenance"})
