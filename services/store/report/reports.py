"""Where the report of the analytics job lies in the store: how it gets there, and how it is read."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from redis.exceptions import ResponseError

from services.store.catalogue.registry import Registry
from services.store.model.errors import StoreError, StoreFault, StoreUnavailable
from services.store.model.keys import RegistryKeys
from services.store.model.safe_notify import FAULT, FAULT_FIELDS, notify_safely
from services.store.redis.blocking_connection import Line
from services.store.redis.link import explain
from services.store.report.report import MOST_OCTETS, Report, decode
from services.store.report.report_figures import Figures, figures

FUNCTION = "ps1_put_report"
TIME_OCTETS = 32  # before the report: when it was planned
log = logging.getLogger(__name__)


def write_report(
    url: str, report: bytes, now_ms: int, *, reply_timeout_s: float = 30.0, patience_s: float = 30.0
) -> bool:
    """False: a newer one is there. For somebody who has no loop of his own.

    now_ms: of the report, by which newer and older are told apart. Raises StoreUnavailable also for a store that takes
    no writes, StoreFault for one that cannot do it, ValueError for a URL that is none.
    """
    key = RegistryKeys().report
    line = Line(url, reply_timeout_s, patience_s)
    try:
        (reply,) = line.ask(key, ("FCALL", FUNCTION, 1, key, now_ms, report))
    except ResponseError as error:
        raise explain(error) from error
    finally:
        line.close()
    return bool(reply)


async def read_report(registry: Registry) -> Report | None:
    """None: there is none yet. Raises ReportUnknown, StoreFault, StoreUnavailable."""
    found = await registry.link.call("GET", registry.keys.report)
    if found is None:
        return None
    if len(found) > MOST_OCTETS + TIME_OCTETS:
        raise StoreFault(f"the report in the store has {len(found)} octets: none of ours has so many")
    return decode(found.partition(b" ")[2])


async def keep_reading(registry: Registry, tell: Callable[[Figures | None], None], every_s: float) -> None:
    """Until it is cancelled. tell: is given what the report says, None where there is none that can be read.

    What was told holds while the store is away: it says of when it is. A fault of ours ends nothing.
    """
    known = ""  # what was wrong, and is said once
    while True:
        trouble = ""
        try:
            report = await read_report(registry)
            notify_safely(figures(report) if report is not None else None, tell)
        except StoreUnavailable:
            trouble = known
        except StoreError as error:
            notify_safely(None, tell)
            trouble = str(error)
        except Exception as error:
            log.critical(FAULT, error, exc_info=True, extra=FAULT_FIELDS)
            notify_safely(None, tell)
        if trouble not in ("", known):
            log.warning("%s", trouble, extra={"action": "report_unreadable"})
        known = trouble
        await asyncio.sleep(every_s)
