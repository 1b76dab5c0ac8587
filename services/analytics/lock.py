"""Lock the output for one run at a time, by a file that the run renews.

Clocks are not compared: a lock expires if its content did not change for the time that it states. On a file system
without exclusive creation (s3a), two runs may take it at the same moment; both check it again before they write.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from services.analytics.files import Files
from services.analytics.places import OutputError
from services.outside.document import read_json
from services.store.redis import machine

LOCK = "runs/lock.json"
LOOK_S = 0.2
RENEWALS = 4  # renewals in the time after which the lock expires
log = logging.getLogger(__name__)


class Locked(Exception):
    """Another run is active in this output."""


class Lock:
    """The lock, held inside its `with` block. Raises Locked, OutputError."""

    def __init__(self, files: Files, lock_s: float) -> None:
        self._files = files
        self._lock_s = lock_s
        self._owner = secrets.token_hex(8)
        self._renewed = 0
        self._over = threading.Event()
        self._lost = ""
        self._renewing = threading.Thread(target=self._renew, name="lock", daemon=True)

    def __enter__(self) -> Self:
        while not self._files.create_json(LOCK, self._content()):
            self._wait_for_end_of(self._octets())
            self._files.delete(LOCK)
        self.check()
        self._renewing.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._renewing.join()
        with suppress(Locked):  # another run may have taken it since the last check
            self.check()
            self._files.delete(LOCK)

    def check(self) -> None:
        """Raise Locked if another run has taken the lock."""
        if not self._lost and (octets := self._octets()) is None:
            self._lost = "removed"
        elif not self._lost:
            found = _told(octets)
            self._lost = (
                ""
                if found.get("owner") == self._owner
                else f"taken by {found.get('host', 'an unknown host')}"
            )
        if self._lost:
            raise Locked(f"{self._files.uri(LOCK)} was {self._lost} during this run; the run stops")

    def _content(self) -> dict[str, Any]:
        return {
            "owner": self._owner,
            "host": socket.gethostname(),
            "boot": machine(),
            "pid": os.getpid(),
            "started": _started(os.getpid()),
            "lock_s": self._lock_s,
            "renewed": self._renewed,
        }

    def _octets(self) -> bytes | None:
        """Return the content of the lock, or None without a lock."""
        try:
            return self._files.read_octets(LOCK) if self._files.exists(LOCK) else None
        except OutputError:
            if self._files.exists(LOCK):
                raise
            return None

    def _wait_for_end_of(self, octets: bytes | None) -> None:
        """Wait until the lock expires. A lock that cannot be parsed expires too."""
        other = _told(octets)
        end = time.monotonic() + float(other.get("lock_s", self._lock_s))
        while octets is not None and not _is_dead(other) and time.monotonic() < end:
            time.sleep(LOOK_S)
            now = self._octets()
            if now not in (None, octets):
                raise Locked(f"another run is active: process {other.get('pid')} on {other.get('host')}")
            octets = now

    def _renew(self) -> None:
        while not self._over.wait(self._lock_s / RENEWALS):
            try:
                self.check()
                self._renewed += 1
                self._files.write_json(LOCK, self._content())
            except Locked:
                return  # the run checks the lock before its next step
            except OutputError as error:
                log.warning("lock renewal failed and is retried: %s", error, extra={"action": "lock"})


def _told(octets: bytes | None) -> dict[str, Any]:
    """Return the parsed lock; empty if it is invalid."""
    try:
        found = read_json(octets or b"")
        float(found.get("lock_s", 0)), int(found.get("pid", 0))
    except (ValueError, TypeError, AttributeError):
        return {}
    return dict(found)


def _is_dead(other: dict[str, Any]) -> bool:
    """Return whether the owner was a process of this machine that has ended, so there is no need to wait."""
    return other.get("boot") == machine() and _started(int(other.get("pid", 0))) != other.get("started")


def _started(pid: int) -> str:
    """Return when a process started, in ticks; '': no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""
