"""A store that stops answering while a command waits: how long, and what the command may then say."""

from __future__ import annotations

import struct
import subprocess
import time

import pytest

from services.store.deadletters.dead_letters import PAGE
from services.store.redis.connect import REPLY_TIMEOUT_S
from tests.cli.shell import Shell
from tests.servers import Server, eventually


def test_what_was_sent_and_never_answered_is_unknown(ready: Shell, server: Server) -> None:
    """Neither "stored" nor "not stored" would be true: exit code 5."""
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
    assert b"1 message stored, of the next 1 nobody knows; --batch-id helps" in error
    assert ready.run("get", "orders", "--all").text.splitlines() in (["one"], ["one", "two"])


def test_what_could_not_be_asked_was_not_done(ready: Shell, server: Server) -> None:
    server.stop()
    try:
        error = ready.fails("put", "orders", "x", "--timeout", "0.5", code=3)
        assert error.startswith("store_unavailable: ")
    finally:
        server.cont()
    assert ready.stats("orders")["ready"] == 0


def test_a_timeout_is_waited_for(ready: Shell, server: Server) -> None:
    """However long it is: longer than the edges would wait for the answer to such a question."""
    server.stop()
    try:
        asking = ready.spawn("put", "orders", "x", "--timeout", "60", stdout=-1, stderr=-1)
        with pytest.raises(subprocess.TimeoutExpired):
            asking.wait(REPLY_TIMEOUT_S + 3)
    finally:
        server.cont()
    assert asking.communicate(timeout=60) == (b"stored 1 message in orders\n", b"")
    assert asking.returncode == 0


def test_a_timeout_must_be_a_time(ready: Shell) -> None:
    assert "--timeout" in ready.run("put", "orders", "x", "--timeout", "0", code=2).err


def test_an_import_that_is_not_answered_tells_between_what_and_what_it_is(
    ready: Shell, server: Server
) -> None:
    """A --skip of what is certain alone would double the others."""
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
    told = (
        "(200 dead letters imported, and of the next 50 nobody knows; go on with --skip 200, and these may come twice, "
        "or with --skip 250, and they may be missing)\n"
    )
    assert error.decode().endswith(told)


@pytest.mark.parametrize("command", [("queue", "list"), ("peek", "orders"), ("log", "show")])
def test_who_only_looks_waits_no_longer_either(
    ready: Shell, server: Server, command: tuple[str, ...]
) -> None:
    server.stop()
    began = time.monotonic()
    try:
        error = ready.fails(*command, "--timeout", "0.3", code=3)
    finally:
        server.cont()
    assert error.startswith("store_unavailable: ")
    assert time.monotonic() - began < 2.5  # the program itself takes its time to start
