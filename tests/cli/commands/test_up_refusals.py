"""penstock up: what keeps it from coming up is one clear line, and no data is lost in silence."""

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
from tests.cli.shell import ANY_PORT, Shell, Up, descendants, lives, processes_in, running
from tests.servers import PATIENCE_S, eventually, free_port, is_free
from tests.sysv.namespace import own_machine


def test_a_port_in_use_is_one_clear_line(alone: Shell) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        taken = f"edges.tmq.listeners.document.port={port}"
        error = alone.fails("up", "--set", taken, "--set", "log.level=ERROR", code=2)
    assert error == (
        f"edge_unusable: tmq cannot start: cannot listen on 127.0.0.1 port {port}: Address already in use; "
        "another `penstock up` or `serve` may run there: end it, or change edges.tmq.listeners.document.port"
    )
    assert alone.run("up", code=2, PENSTOCK_EDGES__TMQ__WORKERS="0").err.count("\n") == 1
    assert not processes_in(alone)


def test_a_second_one_on_the_same_ports_is_told_what_to_change(up: Up, tmp_path: Path) -> None:
    health = up.told["edges"]["tmq"]["health"]["port"]
    error = up.shell.run(
        "up", "--json", "--data-dir", str(tmp_path / "2"), "--set", f"health.port={health}", code=2
    )
    told = json.loads(error.err.splitlines()[-1])
    assert told["error"] == "edge_unusable"
    assert "another `penstock up` or `serve` may run there: end it, or change health.port" in told["message"]


def free_ports(count: int) -> int:
    """Return the first of so many ports in a row on which nothing listens."""
    while True:
        first = free_port()
        if all(map(is_free, range(first, first + count))):
            return first


def test_health_pages_step_over_ports_that_settings_name(alone: Shell) -> None:
    first = free_ports(9)
    pubsub, console = first + 1, first + 3
    options = [f"edges.pubsub.listeners.text.port={pubsub}", f"console.port={console}"]
    words = [word for option in (f"health.port={first}", *options) for word in ("--set", option)]
    with running(alone, *words, "--store-port", str(first + 4)) as up:
        told = up.told["edges"]
        assert told["pubsub"]["listeners"]["text"]["port"] == pubsub
        ports = [told[edge]["health"]["port"] for edge in sorted(told)]
        assert ports == [first, first + 2, first + 5, first + 6]
    words[1] = f"health.port={pubsub}"
    assert alone.fails("up", *words, code=2) == (
        f"bad_settings: health.port: edges.pubsub.listeners.text.port has port {pubsub}, too: "
        "give one of them another port"
    )
    assert "only 2 are free up to 65535" in alone.fails("up", "--set", "health.port=65534", code=2)


@pytest.mark.parametrize(
    ("command", "setting"), [("console", "console.port"), ("console", "health.port"), ("sysv", "health.port")]
)
def test_so_are_those_that_run_beside_it(shell: Shell, command: str, setting: str) -> None:
    """The console of a second `penstock up` is the first to find a port taken, and people read what it says."""
    other = ({"console.port", "health.port"} - {setting}).pop()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = shell.run(command, "--set", f"{setting}={port}", "--set", f"{other}=0", code=2).err
    error = said.splitlines()[-1].removeprefix("penstock: ")
    assert error.startswith(
        "console_unusable: the console cannot start: " if command == "console" else "bad_settings: "
    )
    assert error.endswith(
        f"cannot listen on 127.0.0.1 port {port}: Address already in use; "
        f"another `penstock up` or `serve` may run there: end it, or change {setting}"
    )


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("metadata: {name: a}\nspec: {maxLenght: 1}", "queues.yaml: document 1 (a): spec.maxLenght: unknown"),
        ("metadata: {name: a}\nspec: {ackLevel: 'replicated:2'}", "needs 2 replicas"),
    ],
)
def test_bad_queues_stop_it_before_it_serves(alone: Shell, content: str, says: str) -> None:
    alone.write("queues.yaml", content)
    error = alone.run("up", code=1 if "replicas" in says else 2).err
    assert says in error
    assert not processes_in(alone)


def test_a_server_that_cannot_start_is_shown(alone: Shell) -> None:
    assert "no program 'nosuchserver'" in alone.fails("up", "--store-server", "nosuchserver", code=3)


def test_a_path_may_be_too_long_for_a_socket(alone: Shell) -> None:
    far = alone.folder / ("x" * 100)
    assert "choose a shorter --data-dir" in alone.fails("up", "--data-dir", str(far), code=2)
    with running(alone, "--data-dir", str(far), "--store-port", str(free_port())):
        assert alone.run("queue", "list", "--data-dir", str(far)).err == ""


def test_a_damaged_log_is_one_clear_line(alone: Shell) -> None:
    (log,) = had_data(alone).glob("*.incr.aof")
    data = log.read_bytes()
    command = data.index(b"\r\n*", len(data) // 2) + 2
    log.write_bytes(data[:command] + b"junk" + data[command + 4 :])
    error = alone.fails("up", code=3)
    assert error.startswith("store_unavailable: the store's server did not start: Bad file format")
    assert "store.log" in error


# data that is not there


def had_data(shell: Shell) -> Path:
    with running(shell) as up:
        put(up, b"orders", b"precious")
        assert up.end() == 0
    return shell.folder / "penstock-data" / "appendonlydir"


def test_a_log_that_is_gone_is_refused_and_can_be_restored(alone: Shell) -> None:
    log = had_data(alone)
    backup = alone.folder / "backup"
    shutil.move(log, backup)
    error = alone.fails("up", code=1)
    assert error.startswith("dataset_lost: penstock-data had the data ")
    assert "penstock store init --accept-loss --data-dir penstock-data" in error
    assert not log.exists()  # nothing new stands in the way of the backup
    assert "dataset_lost" in alone.fails("store", "init", code=1)
    shutil.move(backup, log)
    with running(alone):
        assert alone.run("get", "orders").out == b"precious"


def test_an_emptied_log_is_refused(alone: Shell) -> None:
    log = had_data(alone)
    for file in log.glob("*.aof"):
        file.write_bytes(b"")
    assert alone.fails("up", "--set", "log.level=ERROR", code=1).startswith("dataset_lost")
    assert not processes_in(alone)


def test_a_loss_can_be_accepted(alone: Shell) -> None:
    shutil.rmtree(had_data(alone))
    alone.run("store", "init", "--accept-loss", "--data-dir", "penstock-data")
    with running(alone):
        names = [one["name"] for one in alone.run("queue", "list", "--json").objects]
        assert [name for name in names if not name.startswith("ring/")] == []  # a node's own is there again


def test_data_that_vanishes_under_way_ends_it(up: Up) -> None:
    put(up, b"orders", b"precious")
    processes = descendants(up.process.pid)
    shutil.rmtree(up.shell.folder / "penstock-data" / "appendonlydir")
    os.kill(up.store_pid, signal.SIGKILL)
    assert up.wait() == 1
    assert '"error": "dataset_lost"' in up.err
    assert not any(lives(pid) for pid in processes)


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a network namespace")
def test_of_those_started_at_the_same_moment_as_many_stay_as_have_listeners(tmp_path: Path) -> None:
    """Binding decides: of two with the default ports one stays, and one with listeners of its own stays beside it."""
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
    error = json.loads(loser.err.splitlines()[-1])
    assert error["error"] == "edge_unusable"
    assert error["message"].startswith(
        "pubsub cannot start: cannot listen on 127.0.0.1 port 7171: Address already in use; "
    )
    processes = [told for up in staying for told in (*up.told["edges"].values(), up.told["console"])]
    pages = [told["health"]["port"] for told in processes]
    assert len(set(pages)) == 10
    assert {9162, 9163, 9164, 9165} < set(pages)
    assert len({up.told["console"]["url"] for up in staying}) == 2


def shell_without(folder: Path, *variables: str) -> Shell:
    """Return a shell in a new folder, without these variables of the environment."""
    folder.mkdir()
    shell = Shell(folder)
    for name in variables:
        del shell.environment[name]
    return shell
