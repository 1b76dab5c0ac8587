"""Write logs to standard error, one event per line, as JSON or as text.

Log as `log.info("short text", extra={"action": "listening", ...})`: `action` is stable, for searches; the text is for
people. Usual further fields: `conn`, `peer`, `queue`, `edge`, `listener`, `reason`. Never log a message's payload.
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
    """Write all logs and warnings of this process to `stream`, with `fields` in every line."""
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
    """A formatter of lines {"time": "...Z", "level": "INFO", "message": "...", "action": "...", ...}."""

    def __init__(self, fields: dict[str, object]) -> None:
        super().__init__("%(message)s")
        self._fields = fields

    def add_fields(
        self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]
    ) -> None:
        """Add the time, the level, the logger and the fields of every line."""
        log_data.update(time=_time(record), level=record.levelname)
        super().add_fields(log_data, record, message_dict)
        log_data.update(self._fields, logger=record.name)


class TextLines(logging.Formatter):
    """A formatter of lines `time LEVEL message  action=... key=value`."""

    def __init__(self, fields: dict[str, object]) -> None:
        super().__init__("%(message)s")
        self._fields = fields

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, and below it the traceback."""
        extras = {key: value for key, value in vars(record).items() if key not in _ORDINARY}
        pairs = " ".join(f"{key}={_word(value)}" for key, value in (extras | self._fields).items())
        line = f"{_time(record)} {record.levelname:7} {_plain(record.getMessage())}  {pairs}".rstrip()
        if not record.exc_info:
            return line
        trace = self.formatException(record.exc_info).split("\n")
        return "\n".join([line, *map(_plain, trace)])


def _plain(text: str) -> str:
    """Escape unprintable characters, so that input can neither forge lines nor control the terminal."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def _word(value: object) -> str:
    """Return one printable word as it is, anything else in quotes."""
    text = str(value)
    return text if text.isprintable() and " " not in text else json.dumps(text)
