"""Write the report of the analytics job to the store, and read it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from redis.exceptions import ResponseError

from services.store.catalogue.registry import Registry
from services.store.model.errors import StoreError, StoreFault, StoreUnavailable
from services.store.model.keys import RegistryKeys
from services.store.model.safe_notify import FAULT, FAULT_FIELDS, notify_safely
from services.store.redis.blocking_connection import BlockingConnection
from services.store.redis.link import explain
from services.store.report.report import MOST_OCTETS, Report, decode
from services.store.report.report_figures import Figures, figures

FUNCTION = "ps1_put_report"
REPLY_TIMEOUT_S = 30.0
TIME_OCTETS = 32  # before the report: the time of its plan
log = logging.getLogger(__name__)


def write_report(url: str, report: bytes, now_ms: int, *, patience_s: float = 30.0) -> bool:
    """Write a report, blocking; return False if the store has a newer one.

    now_ms: the report's time. Raises StoreUnavailable (also if the store accepts no writes), StoreFault, ValueError for
    an invalid URL.
    """
    key = RegistryKeys().report
    line = BlockingConnection(url, REPLY_TIMEOUT_S, patience_s)
    try:
        (reply,) = line.ask(key, ("FCALL", FUNCTION, 1, key, now_ms, report))
    except ResponseError as error:
        raise explain(error) from error
    finally:
        line.close()
    return bool(reply)


async def read_report(registry: Registry) -> Report | None:
    """Return the report, None before the first one. Raises ReportUnknown, StoreFault, StoreUnavailable."""
    found = await registry.link.call("GET", registry.keys.report)
    if found is None:
        return None
    if len(found) > MOST_OCTETS + TIME_OCTETS:
        raise StoreFault(
            f"the report in the store has {len(found)} octets, more than the analytics job writes"
        )
    return decode(found.partition(b" ")[2])


async def keep_reading(registry: Registry, publish: Callable[[Figures | None], None], every_s: float) -> None:
    """Read the report until cancelled and pass its figures to `publish`; None if it is missing or unreadable.

    While the store is unavailable the last figures, which have their time, stay.
    """
    logged = ""  # the last fault, which is logged once
    while True:
        fault = ""
        try:
            report = await read_report(registry)
            notify_safely(figures(report) if report is not None else None, publish)
        except StoreUnavailable:
            fault = logged
        except StoreError as error:
            notify_safely(None, publish)
            fault = str(error)
        except Exception as error:
            log.critical(FAULT, error, exc_info=True, extra=FAULT_FIELDS)
            notify_safely(None, publish)
        if fault not in ("", logged):
            log.warning("report metrics are missing: %s", fault, extra={"action": "report_unreadable"})
        logged = fault
        await asyncio.sleep(every_s)
