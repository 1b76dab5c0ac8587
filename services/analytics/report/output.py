"""Write the report to the output, remove old ones, and send the newest one to the store."""

from __future__ import annotations

import logging
import re
from datetime import UTC

from services.analytics import output as files
from services.analytics.hours import FORMAT
from services.analytics.output import OutputError, shown
from services.analytics.report.page import page
from services.analytics.settings import LATEST, RUN
from services.outside.document import read_json
from services.store.model import StoreError
from services.store.report import Report, write_report

FOLDER = "reports"
# also what a killed run left incomplete
NAME = re.compile(rf"(?P<run>{RUN.pattern})\.(html|json)(\.[0-9a-f]+\.writing)?")
log = logging.getLogger(__name__)


class ReportRefused(Exception):
    """The output is complete, but the store did not accept the report."""


def write_reports(output: str, report: Report, run: str) -> None:
    """Write the report as page and as JSON, under the name of the run and as the newest one. Raises OutputError."""
    contents = {"html": page(report).encode(), "json": report.encode()}
    for name in (run, LATEST):  # the newest report is replaced last
        for kind, octets in contents.items():
            files.write(output, f"{FOLDER}/{name}.{kind}", octets)


def prune(output: str, first: str) -> None:
    """Remove reports that were written before an hour or day, except the newest one. Raises OutputError.

    first: the first hour, YYYY-MM-DDTHH, or day that is kept; '': all are.
    """
    if not first:
        return
    for name, changed in files.times(output, FOLDER).items():
        found = NAME.fullmatch(name)
        if found and found["run"] != LATEST and f"{changed.astimezone(UTC):{FORMAT}}" < first:
            files.delete(output, f"{FOLDER}/{name}")


def give(output: str, store: str, patience_s: float) -> None:
    """Send the newest report to the store, which keeps a newer one. Raises ReportRefused, OutputError."""
    path = f"{FOLDER}/{LATEST}.json"
    octets = files.read(output, path)
    if octets is None:
        return  # no run has ended
    try:
        told = read_json(octets)
        run, now_ms = str(told["run"]), int(told["now_ms"])
    except (ValueError, TypeError, KeyError) as error:
        raise OutputError(
            f"{shown(output)}/{path} is not a report: remove it; the next run writes a new one"
        ) from error
    try:
        is_there = write_report(store, octets, now_ms, patience_s=patience_s)
    except StoreError as error:
        raise ReportRefused(
            f"the output is complete, but the store did not accept the report: {error}; the next run sends it again"
        ) from error
    text = "report sent to the store" if is_there else "the store keeps a newer report"
    log.info(text, extra={"action": "report", "run": run})
