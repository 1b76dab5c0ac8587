"""What a child of `penstock up` tells the others: events in shared memory, which outlive each process of that child."""

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
PRODUCT = "services"  # the logger above all loggers of the product


class ChildLog(logging.Handler):
    """JSON, one event a line. As a handler it keeps where the process listens, and that its edge has started."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._fd = os.memfd_create("child-log")
        fcntl.fcntl(self._fd, fcntl.F_SETFL, os.O_APPEND)  # workers write side by side

    def attach(self) -> None:
        """Listen to what this process logs from now on, also at a level that its log leaves out."""
        logger = logging.getLogger(PRODUCT)
        logger.addHandler(self)
        logger.setLevel(min(logging.INFO, logger.getEffectiveLevel()))

    def emit(self, record: logging.LogRecord) -> None:
        said = vars(record)
        if "setting" in said or said.get("action") == STARTED:
            self.add({name: said[name] for name in FIELDS if name in said})

    def add(self, event: Event) -> None:
        """Add it, unless the last one of its kind says the same, as it does after most restarts."""
        line = json.dumps(event)
        event = json.loads(line)
        alike = [each for each in self.events() if _kind(each) == _kind(event)]
        if alike[-1:] != [event]:
            os.write(self._fd, f"{line}\n".encode())

    def events(self, action: str | None = None) -> list[Event]:
        """Return the events, oldest first: those with this action, or all."""
        text = os.pread(self._fd, os.fstat(self._fd).st_size, 0)
        events: list[Event] = [
            json.loads(line) for line in text.splitlines(keepends=True) if line.endswith(b"\n")
        ]
        return events if action is None else [event for event in events if event.get("action") == action]

    def has(self, action: str) -> bool:
        return bool(self.events(action))

    @property
    def ports(self) -> dict[tuple[str, ...], int]:
        """Return where each setting of a port has led to, by its path."""
        return {tuple(event["setting"]): event["port"] for event in self.events() if "setting" in event}

    def places(self, action: str) -> dict[str, Place]:
        """Return where it listens, by listener."""
        return {event.get("listener", ""): (event["host"], event["port"]) for event in self.events(action)}

    def fail(self, failure: Failure) -> int:
        """Note how the process ends; returns its exit status."""
        said = {"exit": int(failure.exit), "label": failure.label, "message": failure.message}
        self.add({"action": FAILED, **said})
        return int(failure.exit)

    def failure(self) -> Failure | None:
        """Return how a process of this child has ended last, where it could say so."""
        found = self.events(FAILED)
        return Failure(Exit(found[-1]["exit"]), found[-1]["label"], found[-1]["message"]) if found else None


def _kind(event: Event) -> tuple[str, str]:
    return event.get("action", ""), json.dumps(event.get("setting"))
