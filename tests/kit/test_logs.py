"""Test the format of logs: one event per line, with the same fields in JSON and text."""

from __future__ import annotations

import io
import json
import logging
import re
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from services.kit import logs
from services.kit.config.settings import LogSettings

log = logging.getLogger("services.some.module")


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """Put pytest's own handlers back."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    root.handlers.clear()
    yield
    root.handlers[:] = before
    root.setLevel(level)
    logging.captureWarnings(False)


def configured(**settings: Any) -> io.StringIO:
    stream = io.StringIO()
    logs.configure(LogSettings(**settings), stream, edge="echo")
    return stream


def test_json_logs_have_one_event_per_line() -> None:
    stream = configured()
    log.info("listening on %s", "::1", extra={"action": "listening", "port": 6161})
    log.warning("two\nlines", extra={"action": "odd", "detail": "\x1b[31m"})
    first, second = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first.pop("time"))
    assert first == {
        "level": "INFO",
        "message": "listening on ::1",
        "action": "listening",
        "port": 6161,
        "edge": "echo",
        "logger": "services.some.module",
    }
    assert second["message"] == "two\nlines"
    assert "\x1b" not in stream.getvalue()


@pytest.mark.parametrize(
    "mark", ["\n", "\r", "\x1b[2K", "\x85", "\u2028", "\x0b", "\0", "\u202e", "\udcff", "\x7f"]
)
def test_input_cannot_forge_log_lines(mark: str) -> None:
    """Check that input cannot forge log lines: text logs escape control, bidirectional and invalid characters."""
    stream = configured(format="text")
    try:
        raise ValueError(f"a{mark}b")
    except ValueError as error:
        log.critical(
            "orders%s2026 INFO all is well \u00e9", mark, exc_info=error, extra={"target": f"x{mark}y"}
        )
    first, *rest = stream.getvalue().split("\n")
    escape = mark.encode("unicode_escape").decode()
    assert f"orders{escape}2026 INFO all is well \u00e9  target=" in first
    assert "".join([first, *rest]).isprintable()
    assert any(line.startswith("ValueError: a") for line in rest)


def test_traceback_stays_in_its_json_line() -> None:
    stream = configured()
    try:
        raise RuntimeError("broken")
    except RuntimeError as error:
        log.error("failed", exc_info=error, extra={"action": "session_failed"})
    (line,) = stream.getvalue().splitlines()
    assert json.loads(line)["exc_info"].endswith("RuntimeError: broken")


def test_text_logs_are_readable() -> None:
    stream = configured(format="text")
    log.warning("refused: %s", "bad\nname", extra={"action": "refused", "detail": "a b\n"})
    (line,) = stream.getvalue().splitlines()
    assert line.endswith(r'WARNING refused: bad\nname  action=refused detail="a b\n" edge=echo')


def test_level_applies_and_warnings_are_logged() -> None:
    stream = configured(level="WARNING")
    log.info("not shown")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old ways", DeprecationWarning, stacklevel=1)
    (line,) = stream.getvalue().splitlines()
    assert "old ways" in json.loads(line)["message"]
