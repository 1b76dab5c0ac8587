"""Test how reports are written, removed with the retention, and sent to the store."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from services.analytics.output import OutputError
from services.analytics.report.output import ReportRefused, give, prune, write_reports
from services.store.report.report import decode
from tests.reports import report
from tests.servers import Server

ALL = {"r1.html", "r1.json", "latest.html", "latest.json"}


def test_report_is_written_as_that_of_the_run_and_as_the_newest(tmp_path: Path) -> None:
    for run in ("r0", "r1"):
        write_reports(str(tmp_path), report(run=run), run)
    folder = tmp_path / "reports"
    assert {each.name for each in folder.iterdir()} == ALL | {"r0.html", "r0.json"}
    assert decode((folder / "latest.json").read_bytes()).run == "r1"
    assert (folder / "latest.html").read_bytes() == (folder / "r1.html").read_bytes()


def test_old_reports_are_removed(tmp_path: Path) -> None:
    """Check that only reports by name are removed, with what a killed run left incomplete."""
    write_reports(str(tmp_path), report(), "r1")
    folder = tmp_path / "reports"
    old = {"r0.html", "r0.json", "r0.html.0a1b2c3d.writing", "notes.txt", "-x.json", "latest.json.bak"}
    before = datetime(2025, 11, 20, 7, 59, tzinfo=UTC).timestamp()
    for name in (*old, "latest.html"):
        (folder / name).write_text("")
        os.utime(folder / name, (before, before))
    for first in ("", "2025-11-20", "2025-11-20T07"):
        prune(str(tmp_path), first)
        assert {each.name for each in folder.iterdir()} == ALL | old
    prune(str(tmp_path), "2025-11-20T08")
    assert {each.name for each in folder.iterdir()} == ALL | {"notes.txt", "-x.json", "latest.json.bak"}
    prune(str(tmp_path / "nothing"), "2025-11-20T08")


def test_newest_report_is_sent_to_the_store(tmp_path: Path, server: Server) -> None:
    output = str(tmp_path)
    give(output, server.url, 1.0)  # there is none yet
    write_reports(output, report(), "r1")
    with pytest.raises(ReportRefused, match=r"the output is complete.*the next run sends it again"):
        give(output, "redis://127.0.0.1:1", 0.1)
    (tmp_path / "reports" / "latest.json").write_text("[]")
    with pytest.raises(OutputError, match=r"reports/latest\.json is not a report: remove it"):
        give(output, server.url, 1.0)
