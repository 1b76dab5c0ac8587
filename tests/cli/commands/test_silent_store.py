"""Test commands with a store that stops responding: their time limit and their error."""

from __future__ import annotations

import struct
import subprocess
import time

import pytest

from services.store.deadletters.dead_letters import PAGE
from services.store.redis.connect import REPLY_TIMEOUT_S
from tests.cli.shell import Shell
from tests.servers import Server, eventually


def test_unanswered_put_has_unknown_outcome(ready: Shell, server: Server) -> None:
    """Check that exit code 5 means an unknown outcome, neither "stored" nor "not stored"."""
    putting = ready.spawn(
        *("put", "orders", "--lines", "--timeout", "1"), stdin=subprocess.PIPE, stdout=-1, stderr=-1
    )
    assert putting.stdin is not None
    putting.stdin.write(b"one\n")
    putting.stdin.flush()
    eventually(lambda: ready.stats("orders")["ready"] == 1)
    server.stop()
    try:
        out, error = putting.communicate(b"two\n", timeout=30)
    finally:
        server.cont()
    assert putting.returncode == 5
    assert out == b""
    assert error.startswith(b"penstock: outcome_unknown: ")
    assert b"1 message stored, the next 1 may or may not be; use --batch-id" in error
    assert ready.run("get", "orders", "--all").text.splitlines() in (["one"], ["one", "two"])


def test_unsent_request_was_not_carried_out(ready: Shell, server: Server) -> None:
    server.stop()
    try:
        error = ready.fails("put", "orders", "x", "--timeout", "0.5", code=3)
        assert error.startswith("store_unavailable: ")
    finally:
        server.cont()
    assert ready.stats("orders")["ready"] == 0


def test_timeout_is_waited_for(ready: Shell, server: Server) -> None:
    """Check that a timeout longer than the edges' limit for such a request is waited for."""
    server.stop()
    try:
        asking = ready.spawn("put", "orders", "x", "--timeout", "60", stdout=-1, stderr=-1)
        with pytest.raises(subprocess.TimeoutExpired):
            asking.wait(REPLY_TIMEOUT_S + 3)
    finally:
        server.cont()
    assert asking.communicate(timeout=60) == (b"stored 1 message in orders\n", b"")
    assert asking.returncode == 0


def test_timeout_must_be_a_number(ready: Shell) -> None:
    assert "--timeout" in ready.run("put", "orders", "x", "--timeout", "0", code=2).err


def test_unanswered_import_reports_a_range(ready: Shell, server: Server) -> None:
    """Check that an unanswered import reports a range: --skip of the certain letters would duplicate the others."""
    file = b"".join(struct.pack(">I", 4) + b"%04d" % n + struct.pack(">I", 2) for n in range(PAGE + 50))
    importing = ready.spawn(
        *("dead", "import", "orders", "--garbage-msg", "--timeout", "2"),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert importing.stdin is not None
    importing.stdin.write(file)
    importing.stdin.flush()
    eventually(lambda: ready.stats("orders")["dead_letters"] == PAGE)
    server.stop()
    try:
        _, error = importing.communicate(timeout=60)
    finally:
        server.cont()
    assert importing.returncode == 5
    assert error.startswith(b"penstock: outcome_unknown: ")
    text = (
        "(200 dead letters imported, the next 50 may be; continue with --skip 200, which may duplicate those, "
        "or with --skip 250, which may lose them)\n"
    )
    assert error.decode().endswith(text)


@pytest.mark.parametrize("command", [("queue", "list"), ("peek", "orders"), ("log", "show")])
def test_read_only_commands_time_out_too(ready: Shell, server: Server, command: tuple[str, ...]) -> None:
    server.stop()
    began = time.monotonic()
    try:
        error = ready.fails(*command, "--timeout", "0.3", code=3)
    finally:
        server.cont()
    assert error.startswith("store_unavailable: ")
    assert time.monotonic() - began < 2.5  # starting the program takes time
