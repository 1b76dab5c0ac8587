"""Test at which level a process logs that it is not ready."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from services.kit.config import load
from services.kit.process.process import EdgeProcess
from services.kit.stop import Stop
from tests.kit.echo_edge import EDGE
from tests.kit.harness import until

PROCESS = "services.kit.process.process"


@pytest.mark.parametrize("startup_s", [0.5, 600.0])
async def test_unready_is_a_warning_after_the_first_seconds_or_once_it_was_ready(
    startup_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(f"{PROCESS}.STARTUP_S", startup_s)
    caplog.set_level(logging.INFO, PROCESS)
    flag = tmp_path / "away"
    flag.touch()

    def levels() -> list[str]:
        return [record.levelname for record in caplog.records if "not ready: flag" in record.message]

    def is_logged_ready() -> bool:
        return any(record.message.startswith("ready:") for record in caplog.records)

    tree = {"health": {"port": 0}, "edges": {"echo": {"unready_while": str(flag)}}}
    settings = load(None, tree)
    process, stop = EdgeProcess(EDGE, settings, settings.edge(EDGE)), Stop()
    task = asyncio.create_task(process.run(stop))
    at_start = ["INFO", "WARNING"] if startup_s < 1 else ["INFO"]
    await until(lambda: levels() == at_start)
    flag.unlink()
    await until(is_logged_ready)
    flag.touch()
    await until(lambda: levels() == [*at_start, "WARNING"])
    stop.drain.set()
    stop.hurry.set()
    await task
