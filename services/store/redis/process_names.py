"""Names of processes in the store, and detection of dead processes by name.

Sessions, reservations and owners have the name of their process. A process of the same machine and pid namespace can
see whether that process still runs and, if not, release its claims before they expire. Elsewhere, and where the pid
has been reused, claims end only when they expire.

Virtual machines cloned from one memory snapshot have the same boot id, host name and namespace. They differ if their
hardware addresses or machine ids were renewed; docs/store.md says what happens otherwise.
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
    """Return a unique name that identifies this process in logs."""
    host = re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname())[:64]
    return f"{edge}-{host}-{machine()}-{os.getpid()}-{secrets.token_hex(4)}"


def has_died(name: str) -> bool:
    """Return whether the process in a name ran on this machine and has ended."""
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
    """Return an id common to all processes that see each other's pids; random if it cannot be found out."""
    try:
        identity = f"{BOOT_ID.read_text()} {NAMESPACE.readlink()} {socket.gethostname()}"
    except OSError:
        identity = secrets.token_hex(16)
    identity += f" {_text(MACHINE_ID)} {' '.join(_hardware_addresses())}"
    return hashlib.sha256(identity.encode()).hexdigest()[:8]


def _hardware_addresses() -> list[str]:
    """Return the addresses of physical network devices without Wi-Fi, which randomizes them."""
    found = [path for path in INTERFACES.glob("*") if (path / "device").exists()]
    return sorted(_text(path / "address") for path in found if not (path / "phy80211").exists())


def _text(file: Path) -> str:
    with suppress(OSError):
        return file.read_text().strip()
    return ""
