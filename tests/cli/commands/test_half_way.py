"""Test commands that stop after a partial success: they exit with 1, as 2 to 4 mean that nothing is stored.

docs/guarantees.md
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import re
import struct
import subprocess
import termios
from collections.abc import Callable
from pathlib import Path

from services.store import Store
from tests.cli.shell import PATIENCE_S, Shell
from tests.live import until
from tests.proxy import Proxy
from tests.servers import Server, eventually

CLOSE_WAIT = "08"  # /proc/net/tcp: closed by the peer
BIG = 700 << 10  # bytes; two of them do not fit into one call
TOO_LONG = 17 << 20  # bytes; a message has at most 16 MiB


def stopped_by(shell: Shell, queue: str, cause: Callable[[], object]) -> tuple[int, bytes, str]:
    """Run `put` with two messages, and call `cause` between them."""
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
    """Close the connection and wait until `put` notices: a request on a closed connection has an unknown outcome.

    Of its three connections one did the lookup and is unused; the others carry messages and heartbeats.
    """
    ended = re.compile(rf" [0-9A-F]+:[0-9A-F]+ [0-9A-F]+:{server.port:04X} {CLOSE_WAIT} ")

    def left() -> int:
        return len(ended.findall(Path("/proc/net/tcp").read_text()))

    server.kill9()
    assert left() == 3
    eventually(lambda: left() == 1, PATIENCE_S)


def test_partly_unusable_input(shell: Shell, queue: str) -> None:
    lines = b"".join(b"%d\n" % number for number in range(5000))
    error = shell.fails("put", queue, "--lines", code=1, stdin=lines + bytes(TOO_LONG))
    assert error.startswith("usage: a message of the input exceeds the limit of 16,777,215 bytes")
    stored = shell.stats(queue)["ready"]
    assert stored > 0
    assert error.endswith(f"({stored:,} messages stored before that)")


def test_unusable_input(shell: Shell, queue: str) -> None:
    error = shell.fails("put", queue, "--lines", code=2, stdin=bytes(TOO_LONG))
    assert error.endswith("(0 messages stored before that)")
    assert shell.stats(queue)["added"] == 0


def test_queue_deleted_during_put(shell: Shell, queue: str) -> None:
    code, out, error = stopped_by(shell, queue, lambda: shell.run("queue", "delete", queue, "--yes"))
    assert code == 1
    assert json.loads(out)["stored"] == 1
    assert (json.loads(error)["error"], json.loads(error)["exit"]) == ("queue_unknown", 1)


def test_store_lost_during_put(ready: Shell, server: Server) -> None:
    code, out, error = stopped_by(ready, "orders", lambda: gone(server))
    assert code == 1
    assert json.loads(out)["stored"] == 1
    assert json.loads(error)["error"] == "store_unavailable"
    server.restart()
    assert ready.run("get", "orders", "--all").text == "one\n"


def test_import_that_stops_part_way(shell: Shell, queue: str) -> None:
    """Check that letters before --skip are imported, and the exit code shows whether any were."""
    letter = b"\0\0\0\1x\0\0\0\2"
    into = ("dead", "import", queue, "--garbage-msg")
    assert shell.fails(*into, code=2, stdin=b"\0").startswith("bad_file: truncated")
    assert shell.fails(*into, code=1, stdin=letter + b"\0").startswith("bad_file: truncated")
    assert shell.stats(queue)["dead_letters"] == 1


async def test_import_with_unknown_outcome(ready: Shell, server: Server) -> None:
    """Check an import whose queue is deleted meanwhile, and whose replies after the refusal are lost."""
    letters = [struct.pack(">I", BIG) + kind * BIG + struct.pack(">I", 2) for kind in (b"1", b"2")]
    async with Proxy(server.port) as proxy:
        ready.environment["REDIS_URL"] = proxy.url
        importing = ready.spawn(
            *("dead", "import", "orders", "--garbage-msg", "--json", "--timeout", "3"),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert importing.stdin is not None
        importing.stdin.write(letters[0][:1])
        importing.stdin.flush()
        await until(lambda: not unread(importing))  # by then it has looked the queue up
        store = Store(server.url, "test")
        await store.catalogue.delete(await store.catalogue.find("orders"))
        await store.close()
        proxy.lose_replies_to = b"2" * 1000
        rest = b"".join(letters)[1:]
        _, error = await asyncio.to_thread(importing.communicate, rest, PATIENCE_S)
    document = json.loads(error)
    assert (importing.returncode, document["error"], document["exit"]) == (1, "queue_unknown", 1)
    assert "0 dead letters imported, the next 2 may be" in document["message"]
    assert proxy.lost > 0


def unread(process: subprocess.Popen[bytes]) -> int:
    """Return the number of unread bytes in the process's standard input."""
    assert process.stdin is not None
    return int.from_bytes(fcntl.ioctl(process.stdin, termios.FIONREAD, bytes(4)), "little")
