"""Names of processes in the store, and which of them are known to be dead.

A session, a reservation and the ownership of a queue say which process has them. A process of the same machine and
process namespace can see whether that one still runs, so what it held need not wait until its lease runs out. Nothing
is known of processes elsewhere: there only the lease counts, as it does where the pid is another process's by now.

Virtual machines cloned from one snapshot of memory have the same boot, host name and namespace. Hardware addresses
and the machine id tell them apart if they were renewed; docs/store.md states what follows where they were not.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import secrets
import socket
from contextlib import suppress
from pathlib import Path

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
NAMESPACE = Path("/proc/self/ns/pid")  # its number tells containers of one boot apart
MACHINE_ID = Path("/etc/machine-id")
INTERFACES = Path("/sys/class/net")
_NAME = re.compile(r"-(?P<machine>[0-9a-f]{8})-(?P<pid>\d+)-[0-9a-f]{8}(?: |$)")


def process_name(edge: str) -> str:
    """Return a name that no other process has; it stands in logs, so it says which process that is."""
    host = re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname())[:64]
    return f"{edge}-{host}-{machine()}-{os.getpid()}-{secrets.token_hex(4)}"


def has_died(name: str) -> bool:
    """Return whether the process that a name begins or ends with ran here, and runs no more."""
    found = _NAME.search(name)
    if found is None or found["machine"] != machine():
        return False
    try:
        os.kill(int(found["pid"]), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        pass
    return False


@functools.cache
def machine() -> str:
    """Return what all processes that see each other's pids have in common; unknown, it is this process's alone."""
    try:
        identity = f"{BOOT_ID.read_text()} {NAMESPACE.readlink()} {socket.gethostname()}"
    except OSError:
        identity = secrets.token_hex(16)
    identity += f" {_text(MACHINE_ID)} {' '.join(_hardware_addresses())}"
    return hashlib.sha256(identity.encode()).hexdigest()[:8]


def _hardware_addresses() -> list[str]:
    """Return those of network devices: interfaces that come and go have none, and Wi-Fi changes its own."""
    found = [path for path in INTERFACES.glob("*") if (path / "device").exists()]
    return sorted(_text(path / "address") for path in found if not (path / "phy80211").exists())


def _text(file: Path) -> str:
    with suppress(OSError):
        return file.read_text().strip()
    return ""
