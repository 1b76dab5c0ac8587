"""A command that stops when some of it is stored: 2, 3 and 4 say that nothing is, so it ends with 1 (guarantees.md)."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.cli.shell import PATIENCE_S, Shell
from tests.servers import Server, eventually

CLOSE_WAIT = "08"  # /proc/net/tcp: the other end has closed
TOO_LONG = 17 << 20  # octets; a message has at most 16 MiB


def stopped_by(shell: Shell, queue: str, cause: Callable[[], object]) -> tuple[int, bytes, str]:
    """`put` of two messages, between which something happens."""
    putting = shell.spawn(
        *("put", queue, "--lines", "--json", "--timeout", "3"),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert putting.stdin is not None
    putting.stdin.write(b"one\n")
    putting.stdin.flush()
    eventually(lambda: shell.stats(queue)["ready"] == 1)
    cause()
    out, error = putting.communicate(b"two\n", timeout=PATIENCE_S)
    return putting.returncode, out, error.decode()


def gone(server: Server) -> None:
    """And noticed by who puts in: what is sent on a connection that has just ended is of unknown outcome.

    Of its three connections one looked the queue up and is not used again; the others are for messages and heartbeats.
    """
    ended = re.compile(rf" [0-9A-F]+:[0-9A-F]+ [0-9A-F]+:{server.port:04X} {CLOSE_WAIT} ")

    def left() -> int:
        return len(ended.findall(Path("/proc/net/tcp").read_text()))

    server.kill9()
    assert left() == 3
    eventually(lambda: left() == 1, PATIENCE_S)


def test_input_that_cannot_be_used_to_its_end(shell: Shell, queue: str) -> None:
    lines = b"".join(b"%d\n" % number for number in range(5000))
    error = shell.fails("put", queue, "--lines", code=1, stdin=lines + bytes(TOO_LONG))
    assert error.startswith("usage: a message may have at most 16,777,215 bytes")
    stored = shell.stats(queue)["ready"]
    assert stored > 0
    assert error.endswith(f"({stored:,} messages stored before that)")


def test_input_that_cannot_be_used_at_all(shell: Shell, queue: str) -> None:
    error = shell.fails("put", queue, "--lines", code=2, stdin=bytes(TOO_LONG))
    assert error.endswith("(0 messages stored before that)")
    assert shell.stats(queue)["added"] == 0


def test_the_queue_is_deleted_meanwhile(shell: Shell, queue: str) -> None:
    code, out, error = stopped_by(shell, queue, lambda: shell.run("queue", "delete", queue, "--yes"))
    assert code == 1
    assert json.loads(out)["stored"] == 1
    assert (json.loads(error)["error"], json.loads(error)["exit"]) == ("queue_unknown", 1)


def test_the_store_goes_away_meanwhile(ready: Shell, server: Server) -> None:
    code, out, error = stopped_by(ready, "orders", lambda: gone(server))
    assert code == 1
    assert json.loads(out)["stored"] == 1
    assert json.loads(error)["error"] == "store_unavailable"
    server.restart()
    assert ready.run("get", "orders", "--all").text == "one\n"


def test_an_import_too(shell: Shell, queue: str) -> None:
    """What --skip goes on behind is in; and where none is, the code says so."""
    letter = b"\0\0\0\1x\0\0\0\2"
    into = ("dead", "import", queue, "--garbage-msg")
    assert shell.fails(*into, code=2, stdin=b"\0").startswith("bad_file: truncated")
    assert shell.fails(*into, code=1, stdin=letter + b"\0").startswith("bad_file: truncated")
    assert shell.stats(queue)["dead_letters"] == 1
