"""Events of a child of `penstock up` in shared memory, which survive restarts of that child."""

from __future__ import annotations

import fcntl
import json
import logging
import os
from typing import Any

from services.cli.terminal.exits import Exit, Failure

Event = dict[str, Any]
Place = tuple[str, int]  # host, port

FIELDS = ("action", "setting", "listener", "host", "port")
STARTED = "started"
FAILED = "failed"
PRODUCT = "services"  # parent of all loggers of the product


class ChildLog(logging.Handler):
    """A log of JSON events, one per line. As a logging handler it records listening addresses and the start."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._fd = os.memfd_create("child-log")
        fcntl.fcntl(self._fd, fcntl.F_SETFL, os.O_APPEND)  # workers append concurrently

    def attach(self) -> None:
        """Record what this process logs from now on, regardless of its log level."""
        logger = logging.getLogger(PRODUCT)
        logger.addHandler(self)
        logger.setLevel(min(logging.INFO, logger.getEffectiveLevel()))

    def emit(self, record: logging.LogRecord) -> None:
        """Record the log record if it is a listening address or the start."""
        fields = vars(record)
        if "setting" in fields or fields.get("action") == STARTED:
            self.add({name: fields[name] for name in FIELDS if name in fields})

    def add(self, event: Event) -> None:
        """Add the event unless it repeats the last one of its kind, as after most restarts."""
        line = json.dumps(event)
        event = json.loads(line)
        same_kind = [each for each in self.events() if _kind(each) == _kind(event)]
        if same_kind[-1:] != [event]:
            os.write(self._fd, f"{line}\n".encode())

    def events(self, action: str | None = None) -> list[Event]:
        """Return the events with this action, or all, oldest first."""
        text = os.pread(self._fd, os.fstat(self._fd).st_size, 0)
        events: list[Event] = [
            json.loads(line) for line in text.splitlines(keepends=True) if line.endswith(b"\n")
        ]
        return events if action is None else [event for event in events if event.get("action") == action]

    def has(self, action: str) -> bool:
        """Return whether there is an event with this action."""
        return bool(self.events(action))

    @property
    def ports(self) -> dict[tuple[str, ...], int]:
        """Return the actual port for each port setting, by the setting's path."""
        return {tuple(event["setting"]): event["port"] for event in self.events() if "setting" in event}

    def places(self, action: str) -> dict[str, Place]:
        """Return the listening addresses by listener."""
        return {event.get("listener", ""): (event["host"], event["port"]) for event in self.events(action)}

    def fail(self, failure: Failure) -> int:
        """Record the failure; return the exit status."""
        fields = {"exit": int(failure.exit), "label": failure.label, "message": failure.message}
        self.add({"action": FAILED, **fields})
        return int(failure.exit)

    def failure(self) -> Failure | None:
        """Return the last recorded failure of this child."""
        found = self.events(FAILED)
        return Failure(Exit(found[-1]["exit"]), found[-1]["label"], found[-1]["message"]) if found else None


def _kind(event: Event) -> tuple[str, str]:
    return event.get("action", ""), json.dumps(event.get("setting"))
