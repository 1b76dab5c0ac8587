"""The report among what a run publishes, and given to the store when it is there."""

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
    """The output is complete, but the store has not taken the report."""


def staged_report(
    files: Files, plan: Plan, staging: str, gone: Gone, records: dict[str, dict[str, int]], missing: Missing
) -> list[Move]:
    """Writes it below the staging; the moves that publish it. gone: what the same run is about to remove.

    missing: what this run and those before it missed.
    """
    tables = read_tables(files, staging, hour_at(plan.now_ms), plan.shape.report_hours, gone)
    report = make(tables, Of(plan.run, plan.now_ms, plan.shape.objective, records, missing))
    contents = {"html": page(report).encode(), "json": report.encode()}
    moves = []
    for name in (plan.run, LATEST):  # the newest is replaced at the very end
        for kind, octets in contents.items():
            path = f"{FOLDER}/{name}.{kind}"
            files.write_octets(f"{staging}/{path}", octets)
            moves.append((f"{staging}/{path}", path))
    return moves


def give(files: Files, settings: Settings) -> None:
    """The newest report to the store, which keeps a newer one if it has that. Raises ReportRefused, OutputError."""
    path = f"{FOLDER}/{LATEST}.json"
    if not files.exists(path):
        return  # all that is done was done before there were reports
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
