"""Logs of the edges become logs of `up`, unchanged."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from services.cli.local import logbook
from services.kit import logs
from services.kit.config.settings import LogSettings

LINE = {
    "time": "2026-11-21T15:33:37.614Z",
    "level": "WARNING",
    "message": "100 % sure",
    "action": "done",
    "edge": "tmq",
    "logger": "services.kit.process.drain",
}


@pytest.fixture(autouse=True)
def _same_logging_afterwards() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)


def passed_on(event: dict[str, object], settings: LogSettings) -> str:
    stream = io.StringIO()
    logs.configure(settings, stream)
    read = logbook.read(json.dumps(event).encode())
    assert read is not None
    logbook.pass_on(read)
    return stream.getvalue()


def test_a_line_comes_out_as_it_went_in() -> None:
    assert json.loads(passed_on(LINE, LogSettings())) == LINE


def test_a_traceback_stays_with_its_line() -> None:
    event = {**LINE, "exc_info": "Traceback ...\nValueError: x"}
    assert json.loads(passed_on(event, LogSettings())) == event


def test_text_for_a_terminal() -> None:
    text = passed_on(LINE, LogSettings(format="text"))
    assert text == "2026-11-21T15:33:37.614Z WARNING 100 % sure  action=done edge=tmq\n"


def test_our_own_level_decides() -> None:
    assert passed_on(LINE, LogSettings(level="ERROR")) == ""


@pytest.mark.parametrize("line", [b"", b"plain text", b"[1]", b'{"level": "INFO"}', b"\xff"])
def test_anything_else_is_no_event(line: bytes) -> None:
    assert logbook.read(line) is None
