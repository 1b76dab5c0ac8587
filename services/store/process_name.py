"""Names of processes in the store, and which of them are known to be dead.

A session, a reservation and the ownership of a queue say which process has them. A process of the same machine and
process namespace can see whether that one still runs, so what it held need not wait until its lease runs out. Nothing
is known of processes elsewhere: there only the lease counts, as it does where the pid is another process's by now.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import secrets
import socket
from pathlib import Path

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
NAMESPACE = Path("/proc/self/ns/pid")  # its number tells containers of one boot apart
_NAME = re.compile(r"-(?P<machine>[0-9a-f]{8})-(?P<pid>\d+)-[0-9a-f]{8}(?: |$)")


def process_name(edge: str) -> str:
    """Return a name that no other process has; it stands in logs, so it says which process that is."""
    host = re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname())[:64]
    return f"{edge}-{host}-{_machine()}-{os.getpid()}-{secrets.token_hex(4)}"


def has_died(name: str) -> bool:
    """Return whether the process that a name begins or ends with ran here, and runs no more."""
    found = _NAME.search(name)
    if found is None or found["machine"] != _machine():
        return False
    try:
        os.kill(int(found["pid"]), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        pass
    return False


@functools.cache
def _machine() -> str:
    """Return what all processes that see each other's pids have in common; unknown, it is this process's alone."""
    try:
        identity = f"{BOOT_ID.read_text()} {NAMESPACE.readlink()} {socket.gethostname()}"
    except OSError:
        identity = secrets.token_hex(16)
    return hashlib.sha256(identity.encode()).hexdigest()[:8]
