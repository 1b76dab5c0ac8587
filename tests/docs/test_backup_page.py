"""Run the commands of docs/backup.md on `penstock up` and on a Redis server from Debian."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.docs.bench import Bench, Command, commands
from tests.servers import eventually
from tests.sysv.namespace import own_machine

PAGE = "docs/backup.md"
COPY = "## Copy while it runs"
UP = "penstock up --data-dir penstock-data"
SERVER = "redis://localhost"


@pytest.fixture
def bench() -> Iterator[Bench]:
    """Yield a bench on a network with the page's ports free, in a folder with a path short enough for the socket."""
    with own_machine(), TemporaryDirectory(prefix="p") as folder:
        bench = Bench(Path(folder), "tutorials")
        yield bench
        bench.clear()


def fill(bench: Bench, at: str = "") -> None:
    """Create a queue with two messages."""
    for line in ("queue create orders", "put orders one", "put orders two"):
        bench.run(f"penstock {line} {at}")


def spoil(bench: Bench, at: str = "") -> None:
    """Change the queues after the copy was made."""
    bench.run(f"penstock put orders three {at}")
    bench.run(f"penstock get orders {at}")
    bench.run(f"penstock queue create later {at}")


def is_as_it_was(bench: Bench, at: str = "") -> None:
    """Check that later changes are gone: a new message is lost, and a taken message is back."""
    assert "later" not in bench.run(f"penstock queue list {at}")
    assert [bench.run(f"penstock get orders {at}") for _ in range(2)] == ["one", "two"]
    with pytest.raises(AssertionError):
        bench.run(f"penstock get orders {at}")


def test_a_copy_of_penstock_up_is_restored(bench: Bench) -> None:
    bench.follow(Command(UP, ""))
    fill(bench)
    for command in commands(PAGE, COPY):
        bench.follow(command)
    spoil(bench)
    bench.press_ctrl_c()
    for command in commands(PAGE, "## Restore to penstock up"):
        bench.follow(command)
    is_as_it_was(bench)
    bench.press_ctrl_c()


def test_a_copy_of_a_server_is_restored(bench: Bench) -> None:
    """Check that the page's commands copy and restore the folder of a server, given its port."""
    stop, *put_back, start, doctor = commands(PAGE, "## Restore to a server of your own")
    (bench.folder / "data").mkdir()
    bench.run(start.line)
    try:
        eventually(lambda: "PONG" in bench.run("redis-cli PING", is_certain=False))
        bench.run(f"penstock store init --store {SERVER}")
        at = f"--store {SERVER}"
        fill(bench, at)
        for command in commands(PAGE, COPY):
            bench.follow(Command(of_the_server(command.line), command.shown))
        spoil(bench, at)
        for command in (stop, *put_back, start):
            bench.follow(command)
        eventually(lambda: "PONG" in bench.run("redis-cli PING", is_certain=False))
        bench.follow(doctor)
        is_as_it_was(bench, at)
    finally:
        subprocess.run(["redis-cli", "SHUTDOWN", "NOSAVE"], env=bench.environment, check=False)


def of_the_server(line: str) -> str:
    line = line.replace(" -s penstock-data/store.sock", "").replace(" penstock-data/dataset", "")
    return line.replace("penstock-data/", "data/")
