"""One run at a time: a file in the output that says whose turn it is, renewed while he lives.

Clocks are not compared: a lock is nobody's when its content has not changed for as long as it promised to. A file
system without exclusive creation (s3a) leaves a moment in which two may take it; both read it again before they write.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from pathlib import Path
from typing import Any, Self

from services.analytics.files import Files

LOCK = "runs/lock.json"
LOOK_S = 0.2
RENEWALS = 4  # in the time after which it would be nobody's


class Locked(Exception):
    """Another run is at work in this output."""


class Lock:
    """Held inside its `with`. Raises Locked, OutputError."""

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
            self._wait_for_end_of(self._files.read_json(LOCK))
            self._files.delete(LOCK)
        self.check()
        self._renewing.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._renewing.join()
        if not self._lost:
            self._files.delete(LOCK)

    def check(self) -> None:
        """Raises Locked if somebody else has taken it meanwhile."""
        if not self._lost and self._files.exists(LOCK):
            found = self._files.read_json(LOCK)
            self._lost = "" if found.get("owner") == self._owner else f"taken by {found.get('host')}"
        elif not self._lost:
            self._lost = "removed"
        if self._lost:
            raise Locked(f"{self._files.uri(LOCK)} was {self._lost} while this run was at work: it stops")

    def _content(self) -> dict[str, Any]:
        return {
            "owner": self._owner,
            "host": socket.gethostname(),
            "boot": _boot(),
            "pid": os.getpid(),
            "started": _started(os.getpid()),
            "lock_s": self._lock_s,
            "renewed": self._renewed,
        }

    def _wait_for_end_of(self, other: dict[str, Any]) -> None:
        end = time.monotonic() + float(other.get("lock_s", self._lock_s))
        while not _is_dead(other) and time.monotonic() < end:
            time.sleep(LOOK_S)
            if not self._files.exists(LOCK):
                return
            if self._files.read_json(LOCK) != other:
                raise Locked(f"another run is at work: process {other.get('pid')} on {other.get('host')}")

    def _renew(self) -> None:
        while not self._over.wait(self._lock_s / RENEWALS):
            try:
                self.check()
            except Locked:
                return  # whoever holds it looks before his next step
            self._renewed += 1
            self._files.write_json(LOCK, self._content())


def _is_dead(other: dict[str, Any]) -> bool:
    """Whether it was a process of this machine and is not there any more: nobody has to wait for its end."""
    return other.get("boot") == _boot() != "" and _started(int(other["pid"])) != other.get("started")


def _boot() -> str:
    """Names this boot of this machine and the namespace that process ids are of; '' where that is not known."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}:{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a process started, in ticks; '': there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""
