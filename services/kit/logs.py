"""Logs: one event a line, to standard error; JSON for machines, or text for a person at a terminal.

Say it as `log.info("short text", extra={"action": "listening", ...})`: `action` is stable and meant to be searched
for, the text is meant to be read. Further fields by custom: `conn`, `peer`, `queue`, `edge`, `listener`, `reason`.
Never a message's payload.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

from pythonjsonlogger.json import JsonFormatter

from services.kit.config.settings import LogSettings

_ORDINARY = frozenset((*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "color_message"))


def configure(settings: LogSettings, stream: TextIO | None = None, **fields: object) -> None:
    """Send everything this process logs, warnings too, to `stream`; `fields` go into every line."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setLevel(settings.level)
    handler.setFormatter(JsonLines(fields) if settings.format == "json" else TextLines(fields))
    logging.basicConfig(level=settings.level, handlers=[handler], force=True)
    logging.captureWarnings(True)
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


class JsonLines(JsonFormatter):
    """{"time": "...Z", "level": "INFO", "message": "...", "action": "...", ...}; a traceback is one string."""

    def __init__(self, fields: dict[str, object]) -> None:
        super().__init__("%(message)s")
        self._fields = fields

    def add_fields(
        self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]
    ) -> None:
        log_data.update(time=_time(record), level=record.levelname)
        super().add_fields(log_data, record, message_dict)
        log_data.update(self._fields, logger=record.name)


class TextLines(logging.Formatter):
    """`time LEVEL message  action=... key=value`; the same fields, for the eye."""

    def __init__(self, fields: dict[str, object]) -> None:
        super().__init__("%(message)s")
        self._fields = fields

    def format(self, record: logging.LogRecord) -> str:
        extras = {key: value for key, value in vars(record).items() if key not in _ORDINARY}
        pairs = " ".join(f"{key}={_word(value)}" for key, value in (extras | self._fields).items())
        line = f"{_time(record)} {record.levelname:7} {_plain(record.getMessage())}  {pairs}".rstrip()
        if not record.exc_info:
            return line
        told = self.formatException(record.exc_info).split("\n")
        return "\n".join([line, *(_plain(each) for each in told)])


def _plain(text: str) -> str:
    """What a stranger wrote begins no line of its own, and moves no cursor: as escapes where it is not printable."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def _word(value: object) -> str:
    """As it is if that is one printable word, else quoted."""
    text = str(value)
    return text if text.isprintable() and " " not in text else json.dumps(text)
