"""Test that `penstock up` gives one clear line for every reason not to start, and loses no data silently."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.old_client import put
from tests.cli.shell import ANY_PORT, NO_CONSOLE, Shell, Up, descendants, lives, processes_in, running
from tests.servers import PATIENCE_S, eventually
from tests.sysv.namespace import own_machine


@pytest.mark.parametrize("other", [("--set", "console.port=9162"), ("--store-port", "9162")])
def test_health_port_conflict_is_refused(alone: Shell, other: tuple[str, str]) -> None:
    name = other[1].partition("=")[0] if other[0] == "--set" else other[0]
    assert alone.fails("up", "--set", "health.port=9162", *other, code=2) == (
        f"bad_settings: health.port: {name} also uses port 9162: change one of them"
    )


@pytest.mark.parametrize(
    ("command", "setting"), [("console", "console.port"), ("console", "health.port"), ("sysv", "health.port")]
)
def test_console_reports_a_port_in_use(shell: Shell, command: str, setting: str) -> None:
    """Check that the console of a second `penstock up`, which finds the port taken first, reports it."""
    other = ({"console.port", "health.port"} - {setting}).pop()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        output = shell.run(command, "--set", f"{setting}={port}", "--set", f"{other}=0", code=2).err
    error = output.splitlines()[-1].removeprefix("penstock: ")
    assert error.startswith(
        "console_unusable: the console cannot start: " if command == "console" else "bad_settings: "
    )
    assert error.endswith(
        f"cannot listen on 127.0.0.1 port {port}: Address already in use; "
        f"another `penstock up` or `serve` may use it: stop that, or change {setting}"
    )


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("metadata: {name: a}\nspec: {maxLenght: 1}", "queues.yaml: document 1 (a): spec.maxLenght: unknown"),
        ("metadata: {name: a}\nspec: {ackLevel: 'replicated:2'}", "needs 2 replicas"),
    ],
)
def test_invalid_queues_file_prevents_startup(alone: Shell, content: str, text: str) -> None:
    alone.write("queues.yaml", content)
    error = alone.run("up", code=1 if "replicas" in text else 2).err
    assert text in error
    assert not processes_in(alone)


def test_failing_store_server_is_reported(alone: Shell) -> None:
    assert "no program 'nosuchserver'" in alone.fails("up", "--store-server", "nosuchserver", code=3)


def test_store_port_requires_an_own_store(alone: Shell) -> None:
    url = "redis://127.0.0.1:1"
    assert "--store-server" in alone.fails("up", "--store-port", "7777", code=2, REDIS_URL=url)


# Missing data


@pytest.fixture(scope="module")
def had_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the data folder of a `penstock up` that stopped cleanly."""
    shell = Shell(tmp_path_factory.mktemp("had"))
    with running(shell, *NO_CONSOLE) as up:
        put(up, b"orders", b"precious")
        assert up.end() == 0
    return shell.folder / "penstock-data"


@pytest.fixture
def log(had_data: Path, alone: Shell) -> Path:
    """Return the folder of the store's log, in a copy of those data."""
    data = shutil.copytree(had_data, alone.folder / "penstock-data", ignore=shutil.ignore_patterns("*.sock"))
    return data / "appendonlydir"


def test_damaged_append_only_file_is_one_line(alone: Shell, log: Path) -> None:
    (file,) = log.glob("*.incr.aof")
    data = file.read_bytes()
    command = data.index(b"\r\n*", len(data) // 2) + 2
    file.write_bytes(data[:command] + b"junk" + data[command + 4 :])
    error = alone.fails("up", code=3)
    assert error.startswith("store_unavailable: the store's server did not start: Bad file format")
    assert "store.log" in error


def test_missing_append_only_file_needs_accept_loss(alone: Shell, log: Path) -> None:
    shutil.rmtree(log)
    error = alone.fails("up", code=1)
    assert error.startswith("dataset_lost: penstock-data had dataset ")
    assert "penstock store init --accept-loss --data-dir penstock-data" in error
    assert not log.exists()  # no new data blocks the restore of a backup
    assert "dataset_lost" in alone.fails("store", "init", code=1)
    alone.run("store", "init", "--accept-loss", "--data-dir", "penstock-data")
    with running(alone, *NO_CONSOLE):
        names = [one["name"] for one in alone.run("queue", "list", "--json").objects]
        assert [name for name in names if not name.startswith("ring/")] == []  # a node's own data are back


def test_emptied_append_only_file_is_refused(alone: Shell, log: Path) -> None:
    for file in log.glob("*.aof"):
        file.write_bytes(b"")
    assert alone.fails("up", "--set", "log.level=ERROR", code=1).startswith("dataset_lost")
    assert not processes_in(alone)


def test_data_lost_while_running_ends_up(alone: Shell, log: Path) -> None:
    with running(alone, *NO_CONSOLE) as up:
        processes = descendants(up.process.pid)
        shutil.rmtree(log)
        os.kill(up.store_pid, signal.SIGKILL)
        assert up.wait() == 1
    assert '"error": "dataset_lost"' in up.err
    assert not any(map(lives, processes))


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a network namespace")
def test_simultaneous_starts(tmp_path: Path) -> None:
    """Check that of two with the default ports one stays, by binding, besides one with other listeners."""
    alike = [shell_without(tmp_path / name, *ANY_PORT) for name in ("a", "b")]
    own = shell_without(tmp_path / "own", "PENSTOCK_CONSOLE__PORT", "PENSTOCK_HEALTH__PORT")
    with own_machine(), ExitStack() as stack:
        ups = [Up(shell) for shell in (*alike, own)]
        for up in ups:
            stack.callback(up.kill)
        (loser,) = eventually(lambda: [up for up in ups if up.process.poll() is not None], PATIENCE_S)
        staying = [up.start() for up in ups if up is not loser]
    assert ups[2] is not loser
    assert loser.wait() == 2
    assert not processes_in(loser.shell)
    error = json.loads(loser.err.splitlines()[-1])
    assert error["error"] == "edge_unusable"
    assert error["message"].startswith(
        "pubsub cannot start: cannot listen on 127.0.0.1 port 7171: Address already in use; "
    )
    processes = [
        process
        for up in staying
        for process in (*up.announcement["edges"].values(), up.announcement["console"])
    ]
    pages = [process["health"]["port"] for process in processes]
    assert len(set(pages)) == 10
    assert {9162, 9163, 9164, 9165} < set(pages)
    assert len({up.announcement["console"]["url"] for up in staying}) == 2


def shell_without(folder: Path, *variables: str) -> Shell:
    """Return a shell in a new folder, without these environment variables."""
    folder.mkdir()
    shell = Shell(folder)
    for name in variables:
        del shell.environment[name]
    return shell
