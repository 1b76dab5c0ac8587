"""Stage the report for publication, and send it to the store."""

from __future__ import annotations

import logging

from services.analytics.files import Files
from services.analytics.hours import hour_at
from services.analytics.missing import Missing
from services.analytics.places import OutputError
from services.analytics.plan import Plan
from services.analytics.publish import Move
from services.analytics.report.figures import Of, make
from services.analytics.report.page import page
from services.analytics.report.period import Gone, read_tables
from services.analytics.settings import LATEST, Settings
from services.outside.document import read_json
from services.store.model import StoreError
from services.store.report import write_report

FOLDER = "reports"
log = logging.getLogger(__name__)


class ReportRefused(Exception):
    """The output is complete, but the store did not accept the report."""


def staged_report(
    files: Files, plan: Plan, staging: str, gone: Gone, records: dict[str, dict[str, int]], missing: Missing
) -> list[Move]:
    """Write the report below the staging folder, and return the moves that publish it.

    Args:
        files: the output.
        plan: the plan of the run.
        staging: the staging folder of the run.
        gone: what the same run will remove.
        records: counts of the run, by kind.
        missing: what this run and earlier ones could not read or use.
    """
    tables = read_tables(files, staging, hour_at(plan.now_ms), plan.shape.report_hours, gone)
    report = make(tables, Of(plan.run, plan.now_ms, plan.shape.objective, records, missing))
    contents = {"html": page(report).encode(), "json": report.encode()}
    moves = []
    for name in (plan.run, LATEST):  # the newest report is replaced last
        for kind, octets in contents.items():
            path = f"{FOLDER}/{name}.{kind}"
            files.write_octets(f"{staging}/{path}", octets)
            moves.append((f"{staging}/{path}", path))
    return moves


def give(files: Files, settings: Settings) -> None:
    """Send the newest report to the store, which keeps a newer one. Raises ReportRefused, OutputError."""
    path = f"{FOLDER}/{LATEST}.json"
    if not files.exists(path):
        return  # older versions wrote no reports
    octets = files.read_octets(path)
    try:
        told = read_json(octets)
        run, now_ms = str(told["run"]), int(told["now_ms"])
    except (ValueError, TypeError, KeyError) as error:
        raise OutputError(
            f"{files.uri(path)} is not a report: remove it; the next run writes a new one"
        ) from error
    try:
        is_there = write_report(settings.store, octets, now_ms, patience_s=settings.patience_s)
    except StoreError as error:
        raise ReportRefused(
            f"the output is complete, but the store did not accept the report: {error}; the next run sends it again"
        ) from error
    text = "report sent to the store" if is_there else "the store keeps a newer report"
    log.info(text, extra={"action": "report", "run": run})
