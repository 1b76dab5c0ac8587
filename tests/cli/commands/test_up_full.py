"""Test `penstock up` on a full disk: it reports the error on standard error, and continues after space was freed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
from pathlib import Path
from subprocess import Popen, run

import pytest

from tests.cli.shell import NO_CONSOLE, PROGRAM, Shell
from tests.servers import eventually

ON_A_SMALL_DISK = 'mkdir penstock-data && mount -t tmpfs -o size=4m,mode=700 none penstock-data && exec "$@"'
MAPPED = [] if os.geteuid() == 0 else ["--map-root-user"]


@pytest.mark.timeout(180)
def test_full_disk_is_reported_and_recovered_from(alone: Shell) -> None:
    output, errors = alone.folder / "out", alone.folder / "err"
    command = [
        "unshare",
        "--mount",
        *MAPPED,
        "sh",
        "-c",
        ON_A_SMALL_DISK,
        "sh",
        *PROGRAM,
        "up",
        "--json",
        *NO_CONSOLE,
    ]
    with output.open("wb") as out, errors.open("wb") as err:
        up = Popen(command, cwd=alone.folder, env=alone.environment, stdout=out, stderr=err)
    data = Path(f"/proc/{up.pid}/root{alone.folder.resolve()}/penstock-data")
    try:
        eventually(lambda: output.read_bytes().endswith(b"\n"), 60)
        fill(data / "filler", 384 << 10)
        beside(up, alone, "queue", "create", "orders", codes=(0,))
        (found,) = [
            line for line in beside(up, alone, "doctor", codes=(0,)).splitlines() if line.startswith("disk ")
        ]
        assert found.split()[:2] == ["disk", "WARN"], found
        assert " octets left on the disk of" in found
        fill(data / "filler")
        eventually(lambda: "no space left on the disk of" in messages(errors, "store_restarted"), 60)
        for command in (["put", "orders", "a pump"], ["doctor"]):
            assert "no space left on the disk of" in beside(up, alone, *command, "--timeout", "5")
        (data / "filler").unlink()
        eventually(lambda: answers(data / "store.sock"), 60)
    finally:
        up.terminate()
        assert up.wait(60) == 0
    assert str(alone.folder / "penstock-data") in messages(errors, "store_restarted")


def beside(up: Popen[bytes], shell: Shell, *arguments: str, codes: tuple[int, ...] = (1, 3, 5)) -> str:
    """Return the error of another command on the same disk."""
    user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
    entered = ["nsenter", "--target", str(up.pid), "--mount", *user]
    command = [*entered, "sh", "-c", 'cd "$0" && exec "$@"', str(shell.folder), *PROGRAM, *arguments]
    done = run(command, env=shell.environment, capture_output=True, text=True)
    assert done.returncode in codes, done
    return done.stdout + done.stderr


def fill(file: Path, left: int = 0) -> None:
    """Fill the disk except for this many bytes."""
    with file.open("ab", buffering=0) as filler, contextlib.suppress(OSError):
        while not left or shutil.disk_usage(file.parent).free > left:
            filler.write(bytes(4096))
    assert shutil.disk_usage(file.parent).free <= left


def messages(path: Path, action: str) -> str:
    """Return the messages of all log lines with this action."""
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]
    return "\n".join(line["message"] for line in lines if line.get("action") == action)


def answers(path: Path) -> bool:
    """Return whether the store responds. A socket path has at most 107 bytes, so this uses the folder's descriptor."""
    folder = os.open(path.parent, os.O_PATH)
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(5.0)
            line.connect(f"/proc/self/fd/{folder}/{path.name}")
            line.sendall(b"PING\r\n")
            return line.recv(100).startswith(b"+PONG")
    except OSError:
        return False
    finally:
        os.close(folder)
