"""Test `penstock put`, `get` and `peek`: messages are unchanged, and none is lost."""

from __future__ import annotations

import base64
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from services.cli.commands.get import GetRun
from services.cli.terminal.message import body_writer, open_client
from services.store import Delivery, QueueSpec, Store
from services.store.pipeline.async_client import AsyncClient
from tests.cli.shell import Shell
from tests.servers import eventually

NOT_TEXT = b"\x00\xff\nnot text\xfe"


def test_a_body_comes_out_as_it_went_in(shell: Shell, queue: str) -> None:
    shell.run("put", queue, "a body")
    shell.run("put", queue, stdin=NOT_TEXT)
    shell.run("put", queue, "--file", str(shell.write("body", "one line\nand another\n")))
    assert shell.run("get", queue).out == b"a body"
    assert shell.run("get", queue).out == NOT_TEXT
    assert shell.run("get", queue, "--json").object["body"] == "one line\nand another\n"
    assert shell.stats(queue)["acked"] == 3


def test_an_empty_message_is_a_message(shell: Shell, queue: str) -> None:
    shell.run("put", queue, "")
    assert shell.run("get", queue).out == b""
    assert "queue_empty" in shell.fails("get", queue, code=4)


def test_each_line_is_a_message_and_comes_out_as_a_line(shell: Shell, queue: str) -> None:
    done = shell.run("put", queue, "--lines", "--json", stdin=b"one\n\nthree")
    assert done.object == {"queue": queue, "stored": 3, "refused": 0}
    assert shell.run("get", queue, "-n", "2").out == b"one\n\n"
    assert shell.run("get", queue, "--all").out == b"three\n"


def test_messages_with_line_feeds_are_kept_apart_by_nul(shell: Shell, queue: str) -> None:
    shell.run("put", queue, "--lines", "-0", stdin=b"a\nb\0c\0")
    assert shell.run("get", queue, "--all", "-0").out == b"a\nb\0c\0"


def test_thousands_of_lines_keep_their_order(shell: Shell, queue: str) -> None:
    lines = b"".join(b"%d\n" % number for number in range(3500))
    shell.run("put", queue, "--lines", stdin=lines)
    assert shell.run("get", queue, "--all").out == lines
    assert shell.stats(queue)["in_flight"] == 0


def test_json_has_all_fields_of_a_message(shell: Shell, queue: str) -> None:
    shell.run("put", queue, "--attr", "kind=order", "--attr", "empty=", stdin=NOT_TEXT)
    document = shell.run("get", queue, "--json").object
    assert base64.b64decode(document["body"]) == NOT_TEXT
    assert document["encoding"] == "base64"
    assert document["attributes"] == {"kind": "order", "empty": ""}
    assert document["origin"].startswith("cli ")
    assert abs(document["enqueued_ms"] / 1000 - time.time()) < 60
    assert (document["acquired"], document["failed"]) == (1, 0)


def test_peek_takes_nothing(shell: Shell, queue: str) -> None:
    shell.run("put", queue, "--lines", stdin=b"first\nsecond\n")
    assert [m["body"] for m in shell.run("peek", queue, "--json").objects] == ["first", "second"]
    assert shell.run("peek", queue, "--raw", "-n", "1").out == b"first\n"
    table = shell.run("peek", queue).text
    assert "first" in table
    assert shell.stats(queue)["delivered"] == 0
    assert "queue_empty" not in table


def test_peek_counts_earlier_deliveries_but_not_itself(shell: Shell, queue: str) -> None:
    shell.run("put", queue, "x")
    assert shell.run("peek", queue, "--json").object["acquired"] == 0
    shell.run("get", queue, "--no-ack")
    assert shell.run("peek", queue, "--json").object["acquired"] == 1


def test_no_ack_returns_messages_to_their_places(shell: Shell, queue: str) -> None:
    shell.run("put", queue, "--lines", stdin=b"1\n2\n3\n")
    assert shell.run("get", queue, "-n", "2", "--no-ack").out == b"1\n2\n"
    assert shell.run("get", queue, "--all").out == b"1\n2\n3\n"


def test_batch_id_is_stored_once(shell: Shell, queue: str) -> None:
    for _ in range(2):
        shell.run("put", queue, "--batch-id", "monday", "--lines", stdin=b"1\n2\n")
    shell.run("put", queue, "--batch-id", "tuesday", "3")
    assert shell.run("get", queue, "--all").out == b"1\n2\n3\n"


@pytest.mark.parametrize(
    ("options", "body"), [([], b"1\n3\n"), ([], b"1\n"), ([], b"12\n"), (["--attr", "a=b"], b"1\n2\n")]
)
def test_another_batch_under_the_same_id_is_refused(
    shell: Shell, queue: str, options: list[str], body: bytes
) -> None:
    shell.run("put", queue, "--batch-id", "monday", "--lines", stdin=b"1\n2\n")
    error = shell.fails("put", queue, "--batch-id", "monday", "--lines", *options, code=1, stdin=body)
    assert error.startswith("batch_differs: another batch was stored under this id")
    assert shell.run("get", queue, "--all").out == b"1\n2\n"


def test_batch_can_be_repeated_in_another_trace(shell: Shell, queue: str) -> None:
    """Check that a repeated batch may differ in its trace, which each run has of its own (docs/tracing.md), only."""

    def put(*attributes: str, code: int = 0) -> str:
        results = [part for each in attributes for part in ("--attr", each)]
        return shell.run("put", queue, "a", "--batch-id", "monday", *results, code=code).err

    first, second = [f"traceparent=00-{number:032x}-{number:016x}-01" for number in (1, 2)]
    put(first, "colour=red")
    put(second, "colour=red")
    put(second, "tracestate=vendor=x", "colour=red")
    put("colour=red")
    assert put(first, "colour=blue", code=1).startswith("penstock: batch_differs")
    (kept,) = shell.run("get", queue, "--all", "--json").objects
    assert kept["attributes"] == {"traceparent": f"00-{1:032x}-{1:016x}-01", "colour": "red"}


def test_a_batch_is_all_or_nothing(shell: Shell, new_queue: Callable[..., str]) -> None:
    small = new_queue("--max-length", "2")
    assert shell.fails("put", small, "--batch-id", "b", "--lines", code=1, stdin=b"1\n2\n3\n").startswith(
        "queue_full"
    )
    assert shell.stats(small)["ready"] == 0


def test_a_batch_has_a_bound(shell: Shell, queue: str) -> None:
    too_many = b"x\n" * 10_001
    assert "10,000" in shell.fails("put", queue, "--batch-id", "b", "--lines", code=2, stdin=too_many)
    shell.run("put", queue, "--batch-id", "b", "--lines", stdin=too_many[2:])
    assert shell.stats(queue)["ready"] == 10_000


def test_put_into_full_queue_reports_stored_messages(shell: Shell, new_queue: Callable[..., str]) -> None:
    small = new_queue("--max-length", "2")
    done = shell.run("put", small, "--lines", "--json", code=1, stdin=b"1\n2\n3\n")
    assert done.object == {"queue": small, "stored": 2, "refused": 1}
    assert '"error": "queue_full"' in done.err
    assert "0 messages stored" in shell.fails("put", small, "4", code=1)
    assert shell.run("get", small, "--all").out == b"1\n2\n"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--attr", "novalue", "x"], "KEY=VALUE"),
        (["--null", "x"], "--lines"),
        (["--lines", "x"], "BODY"),
        (["--file", "missing"], "No such file"),
    ],
)
def test_wrong_use_of_put(shell: Shell, queue: str, arguments: list[str], text: str) -> None:
    assert text in shell.fails("put", queue, *arguments, code=2)
    assert shell.stats(queue)["added"] == 0


def test_message_that_is_too_long(shell: Shell, queue: str) -> None:
    assert "16,777,215" in shell.fails("put", queue, code=2, stdin=bytes(1 << 24))


def test_an_unknown_queue_is_not_found(shell: Shell) -> None:
    for command in (["put", "missing", "x"], ["get", "missing"], ["peek", "missing"]):
        assert shell.fails(*command, code=4) == "queue_unknown: there is no queue 'missing'"


def test_queue_names_may_be_any_bytes(shell: Shell) -> None:
    """Check that commands show and accept names of any bytes, as TMQ clients can create them."""
    name = b"caf\xe9 \x1b[31m"
    shell.with_store(lambda store: store.catalogue.declare(os.fsdecode(name), QueueSpec(), "test"))
    shell.run("put", name, "x")
    listed = shell.run("queue", "list").text
    assert "caf\\xe9 \\x1b[31m" in listed
    assert "\x1b" not in listed
    assert shell.run("get", name).out == b"x"
    shell.run("queue", "delete", name)


# Waiting -----------------------------------------------------------------------------------------------------------


def test_waiting_ends_when_a_message_comes(shell: Shell, queue: str) -> None:
    getting = shell.spawn("get", queue, "--wait", "60", stdout=-1)
    is_open = lambda: "cli-" in shell.run("doctor", "--json").text  # noqa: E731
    eventually(is_open, pause_s=0.1)  # its session is open, so it waits
    shell.run("put", queue, "at last")
    began = time.monotonic()
    assert getting.communicate(timeout=30)[0] == b"at last"
    assert time.monotonic() - began < 20


def test_waiting_is_bounded(shell: Shell, queue: str) -> None:
    began = time.monotonic()
    shell.fails("get", queue, "--wait", "1.5", code=4)
    assert 1.5 <= time.monotonic() - began < 30


def test_wait_collects_the_requested_number(shell: Shell, queue: str) -> None:
    shell.run("put", queue, "1")
    getting = shell.spawn("get", queue, "-n", "2", "--wait", "60", stdout=-1)
    eventually(lambda: shell.stats(queue)["acked"] == 1)
    shell.run("put", queue, "2")
    assert getting.communicate(timeout=30)[0] == b"1\n2\n"


# Unwritable output leaves messages in the queue ---------------------------------------------------------------------


def test_full_disk_keeps_message_in_queue(shell: Shell, queue: str) -> None:
    shell.run("put", queue, "precious")
    with open("/dev/full", "wb") as full:
        getting = shell.spawn("get", queue, stdout=full, stderr=-1)
        error = getting.communicate(timeout=30)[1].decode()
    assert getting.returncode == 74
    assert error == "penstock: io_error: No space left on device\n"
    assert shell.run("get", queue).out == b"precious"


def test_messages_are_synced_before_acknowledgement(
    shell: Shell, queue: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that messages are synced once before they are acknowledged together (docs/cli.md, get)."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.fstat(fd).st_size))
    for body in ("one", "two", "three"):  # each is an entry of its own
        shell.run("put", queue, body)

    async def get(store: Store) -> None:
        found = await store.catalogue.find(queue)
        with (tmp_path / "bodies").open("wb") as file, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", file)
            getting = GetRun(found, await open_client(store, found), 10, False, body_writer(10, False))
            settle = AsyncClient.settle

            async def settled(client: AsyncClient, written: list[Delivery]) -> None:
                assert synced == [len("one\ntwo\nthree\n")]
                await settle(client, written)

            patch.setattr(AsyncClient, "settle", settled)
            assert await getting.step(lambda _: None)

    shell.with_store(get)
    assert len(synced) == 1
    assert shell.stats(queue)["ready"] == 0


@pytest.mark.parametrize("command", ["queue show", "peek --json"])
def test_results_that_cannot_be_written_are_an_error(shell: Shell, queue: str, command: str) -> None:
    shell.run("put", queue, "x")
    name, *rest = command.replace("show", f"show {queue}").replace("peek", f"peek {queue}").split()
    with open("/dev/full", "wb") as full:
        asking = shell.spawn(name, *rest, stdout=full, stderr=-1)
        error = asking.communicate(timeout=30)[1].decode()
    assert asking.returncode == 74
    assert "No space left on device" in error
    assert error.count("\n") == 1


def test_closed_pipe_keeps_message_in_queue(shell: Shell, queue: str) -> None:
    shell.run("put", queue, "precious")
    ours, theirs = os.pipe()
    os.close(ours)
    getting = shell.spawn("get", queue, stdout=theirs, stderr=-1)
    os.close(theirs)
    assert getting.communicate(timeout=30)[1] == b""
    assert getting.returncode == 141
    assert shell.run("get", queue).out == b"precious"


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGHUP, 143), (signal.SIGINT, 130)])
def test_signal_returns_unread_messages(shell: Shell, queue: str, signum: signal.Signals, code: int) -> None:
    lines = b"".join(b"%0100d\n" % number for number in range(3000))
    shell.run("put", queue, "--lines", stdin=lines)
    getting = shell.spawn("get", queue, "--all", stdout=-1, stderr=-1)
    eventually(lambda: shell.stats(queue)["in_flight"] == 1000)  # the pipe is full: 64 KiB, less than a page
    getting.send_signal(signum)
    got, error = getting.communicate(timeout=30)
    assert getting.returncode == code
    assert error.strip() == b""
    assert len(got) <= 65536
    assert shell.stats(queue)["in_flight"] == 0
    assert shell.run("get", queue, "--all").out == lines


def test_output_to_a_file_is_whole(shell: Shell, queue: str, tmp_path: Path) -> None:
    lines = b"".join(b"%0200d\n" % number for number in range(1500))
    shell.run("put", queue, "--lines", stdin=lines)
    with open(tmp_path / "out", "wb") as out:
        assert shell.spawn("get", queue, "--all", stdout=out).wait(30) == 0
    assert (tmp_path / "out").read_bytes() == lines


# At a terminal -----------------------------------------------------------------------------------------------------


def test_messages_are_escaped_on_a_terminal(shell: Shell, queue: str) -> None:
    shell.run("put", queue, stdin=b"\x1b[2J\x07red\ttab\nline")
    for command in ("peek", "get"):
        with shell.terminal(command, queue) as terminal:
            assert terminal.end() == 0
            assert b"\\x1b[2J\\x07red" in terminal.screen
            assert b"\x07" not in terminal.screen


def test_put_at_a_terminal_needs_a_body(shell: Shell, queue: str) -> None:
    with shell.terminal("put", queue) as terminal:
        assert terminal.end() == 2
        assert terminal.sees("no message")


def test_no_ack_is_refused_for_at_most_once_queues(shell: Shell, new_queue: Callable[..., str]) -> None:
    once = new_queue("--delivery", "at-most-once")
    shell.run("put", once, "x")
    assert "peek" in shell.fails("get", once, "--no-ack", code=2)
    assert shell.run("get", once).out == b"x"
    assert shell.stats(once)["in_flight"] == 0
