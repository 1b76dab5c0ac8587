"""Test `penstock sysv`: options, exit statuses, health pages (docs/sysv.md 4, 5)."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from services.cli.main import run
from services.store import QueueSpec, Store
from services.sysv.settings import format_key
from tests.cli.shell import ended
from tests.live import until
from tests.servers import Server
from tests.sysv.live import LiveBridge
from tests.sysv.local import Keys, existing, find, make, shown_by_ipcs
from tests.sysv.process import BridgeProgram
from tests.sysv.program import Program

NOBODY = 65_534
Start = Callable[..., BridgeProgram]


@pytest.fixture
def start(server: Server, keys: Keys, tmp_path: Path) -> Iterator[Start]:
    started: list[BridgeProgram] = []

    def make(*options: str) -> BridgeProgram:
        started.append(BridgeProgram(server.url, tmp_path, *options))
        return started[-1]

    yield make
    for program in started:
        program.kill9()


def page(program: BridgeProgram, path: str) -> str:
    (event,) = program.events("health_listening")
    with urllib.request.urlopen(f"http://{event['host']}:{event['port']}{path}", timeout=10) as reply:
        return str(reply.read().decode())


async def test_mappings_of_the_command_line(
    bridge: LiveBridge, start: Start, keys: Keys, program: Program, tmp_path: Path
) -> None:
    """Check mappings of the command line in both directions, health pages, and an orderly stop that removes queues."""
    requests, replies = await bridge.queue("requests"), await bridge.queue("replies")
    into, out = keys.new(), keys.new()
    options = ("--in", f"{hex(into)}:requests", "--out", f"{out}:replies", "--mode", "0640")
    running = start(*options, "--remove-on-exit")
    await asyncio.to_thread(running.started)
    shown = shown_by_ipcs(into)
    assert shown is not None
    assert shown[2] == "640"
    await bridge.put(requests, b"what?", priority=3)
    assert await asyncio.to_thread(program.receive, into, 1) == [(b"what?", 3)]
    await asyncio.to_thread(program.send, out, 4, b"that")
    await until(lambda: bridge.bodies(replies))
    assert await bridge.bodies(replies) == [b"that"]
    assert (tmp_path / "penstock-sysv" / f"{format_key(out)}.journal").exists()
    metrics = await asyncio.to_thread(page, running, "/metrics")
    assert f'penstock_sysv_messages_total{{edge="sysv",mapping="out-{out}-replies"}} 1.0' in metrics
    assert await asyncio.to_thread(page, running, "/readyz") == "ok\n"
    assert await asyncio.to_thread(running.stop) == 0
    assert (find(into), find(out)) == (None, None)


async def test_mappings_of_the_settings(bridge: LiveBridge, start: Start, key: int, tmp_path: Path) -> None:
    orders = await bridge.queue("orders")
    (tmp_path / "penstock.yaml").write_text(
        f"sysv:\n  journal: elsewhere\n  mappings:\n"
        f"    mine: {{key: {hex(key)}, queue: orders, direction: out, mode: '0606'}}\n"
    )
    running = start()
    await asyncio.to_thread(running.started)
    existing(key).send(b"x")
    await until(lambda: bridge.bodies(orders))
    assert list((tmp_path / "elsewhere").iterdir()) == [tmp_path / "elsewhere" / f"{format_key(key)}.journal"]
    assert existing(key).mode & 0o777 == 0o606
    assert await asyncio.to_thread(running.stop) == 0
    assert find(key) is not None


def as_nobody(arguments: list[str], log: Path) -> int:
    """Run the command as nobody in a forked process, as only this user may read the code; return its exit status."""
    importlib.import_module("services.sysv.process")
    child = os.fork()
    if not child:
        status = 99
        try:
            with log.open("wb") as written:
                os.dup2(written.fileno(), 2)
            sys.stderr = os.fdopen(2, "w")
            logging.getLogger().handlers.clear()
            os.chdir("/")
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            status = run(arguments)
            sys.stderr.flush()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


async def _declare(url: str) -> None:
    store = Store(url, "test")
    await store.catalogue.declare("orders", QueueSpec(), "test")
    await store.close()


def test_denied_access_is_a_one_line_error(server: Server, key: int, tmp_path: Path) -> None:
    """Check that denied access is a one-line error (4.3)."""
    asyncio.run(_declare(server.url))
    make(key, 0o600)
    log = tmp_path / "log"
    options = ["--store", server.url, "--set", "health.port=0", "--in", f"{key}:orders"]
    assert as_nobody(["sysv", *options], log) == 2
    assert log.read_text().splitlines()[-1] == (
        f"penstock: denied: mapping in-{key}-orders: the local queue with key {format_key(key)} may not be written "
        f"by uid {NOBODY}: it belongs to uid 0 and has mode 0600"
    )
    assert "Traceback" not in log.read_text()


REFUSED = [  # options with a key for KEY, exit status, beginning of the line, other words in it
    (("--in", "KEY:orders", "--out", "KEY:orders"), 2, "loop: the mappings form a loop: ", ""),
    (("--out", "KEY:nowhere"), 4, "queue_unknown: ", ""),
    ((), 2, "no_mappings: ", ""),
    (("--in", "orders"), 2, "usage: write KEY:QUEUE", ""),
    (("--in", "zero:orders"), 2, "bad_settings: sysv.mappings.", ""),
    (("--out", "KEY:orders", "--out-t-msg", "KEY:orders"), 2, "", "both receive from the local queue"),
    (
        ("--set", "sysv.mappings.m={key: KEY, queue: orders, direction: in, mode: 440}"),
        *(2, "", "in quotes, such as '0640', not 440"),
    ),
    (("--mode", "0600"), 2, "usage: --mode requires --in or --out", ""),
    (("--set", "sysv.idle_s=-1"), 2, "bad_settings: sysv.idle_s", ""),
]


async def test_unusable_settings_are_one_line_errors(
    bridge: LiveBridge, start: Start, key: int, tmp_path: Path
) -> None:
    await bridge.queue("orders")
    taken = (("--out", "KEY:orders"), 2, "in_use: ", "")
    for options, code, begins, says in [*REFUSED, taken]:
        if options is taken[0]:
            await asyncio.to_thread(start("--out", f"{key}:orders").started)
        arguments = [word.replace("KEY", str(key)) for word in options]
        command = ["sysv", "--store", bridge.url, "--set", "health.port=0", *arguments]
        done = ended(command, tmp_path, {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}, b"")
        assert done.code == code, (options, done.err)
        assert "Traceback" not in done.err
        line = done.err.splitlines()[-1]
        assert line.startswith(f"penstock: {begins}"), (options, line)
        assert says in line, (options, line)


async def test_bridge_stops_while_it_waits_for_the_store(key: int, tmp_path: Path) -> None:
    running = BridgeProgram("redis://127.0.0.1:1", tmp_path, "--in", f"{key}:orders")
    try:
        await until(lambda: running.events("sysv_waits_for_store"))
        assert await asyncio.to_thread(running.stop) == 0
    finally:
        running.kill9()


NAMESPACE = """
set -e
[ "$(ipcs -q | grep -c 0x)" = 0 ]
echo 65536 > /proc/sys/kernel/msgmax
ipcmk -Q > /dev/null
key=$(ipcs -q | grep -o '0x[0-9a-f]*')
head -c 12000 /dev/zero | tr '\\0' x | "$1" send $key 6 > /dev/null
echo 8192 > /proc/sys/kernel/msgmax
shift
exec "$@" --out $key:orders
"""


async def test_message_above_a_lowered_msgmax(
    bridge: LiveBridge, server: Server, program: Program, tmp_path: Path
) -> None:
    """Check a message that the kernel does not show in advance, and for which the journal is too small (3.2, 3.7).

    The test uses an IPC namespace of its own, as msgmax applies to the whole machine.
    """
    orders = await bridge.queue("orders")
    running = BridgeProgram(
        server.url, tmp_path, wrapper=["unshare", "--ipc", "sh", "-c", NAMESPACE, "sh", str(program.path)]
    )
    try:
        await asyncio.to_thread(running.started)
        await until(lambda: bridge.bodies(orders))
        (content,) = await bridge.contents(orders)
        assert (content.body, content.attributes) == (b"x" * 12000, {"mtype": 6})
        assert await asyncio.to_thread(running.stop) == 0
    finally:
        running.kill9()
