"""The logs of the edges that `penstock up` runs, in one stream, as this process would write them itself."""

from __future__ import annotations

import json
import logging
from datetime import datetime
from typing import Any

from services.kit.config import LogSettings

Event = dict[str, Any]
LEVELS = logging.getLevelNamesMapping()
NEEDED = {"time", "level", "message"}


def child_settings(settings: LogSettings) -> list[str]:
    """What makes a child's log readable for `read`: JSON, with at least what `up` itself wants to know."""
    level = "DEBUG" if settings.level == "DEBUG" else "INFO"
    return ["--set", "log.format=json", "--set", f"log.level={level}"]


def read(line: bytes) -> Event | None:
    """The event that a line of a child's log holds; None for any other line."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and event.keys() >= NEEDED else None


def pass_on(event: Event) -> None:
    """Written by our own log, if our own level lets it through."""
    fields = dict(event)
    logger = logging.getLogger(fields.pop("logger", "edge"))
    level = LEVELS.get(fields.pop("level"), logging.ERROR)
    record = logging.makeLogRecord(
        {
            "name": logger.name,
            "levelno": level,
            "levelname": logging.getLevelName(level),
            "msg": str(fields.pop("message")),
            "exc_text": fields.pop("exc_info", None),
            "created": datetime.fromisoformat(fields.pop("time")).timestamp(),
            **fields,
        }
    )
    if logger.isEnabledFor(level):
        logger.handle(record)
