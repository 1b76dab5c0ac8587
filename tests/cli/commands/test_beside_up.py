"""Test commands, clients and the console next to a running `penstock up`."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from services.store import Store
from tests.cli.commands.test_dead import bury
from tests.cli.commands.test_doctor import findings
from tests.cli.commands.test_rqp_send import declare, waiting
from tests.cli.old_client import connected
from tests.cli.shell import Shell, Up, running
from tests.servers import eventually

RESERVED = "names that begin with ring/ are reserved for the queues of ring nodes"
DOCUMENT = "apiVersion: penstock.dev/v1alpha1\nkind: Queue\nmetadata: {name: '%s'}\n"


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Yield a running system, stopped after this module: seven idle processes use a fiftieth of a processor."""
    with running(Shell(tmp_path_factory.mktemp("cli"))) as up:
        yield up


@pytest.fixture(scope="module")
def beside(system: Up) -> Shell:
    """Return the shell of the running `up`."""
    return system.shell


def test_old_clients_and_commands_use_the_same_queue(system: Up) -> None:
    with connected(system, b"met") as client:
        assert client.created
        assert client.enqueue(b"from the client")
        system.shell.run("put", "met", "from the command line")
        assert system.shell.run("get", "met").out == b"from the client"
        assert client.dequeue() == b"from the command line"


def test_health_and_metrics_answer(system: Up) -> None:
    health = system.announcement["edges"]["tmq"]["health"]
    with socket.create_connection((health["host"], health["port"])) as connection:
        connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        page = connection.makefile("rb").read()
    assert b"penstock_ready" in page


def test_the_console_knows_the_token_of_the_data_folder(system: Up) -> None:
    url, file = system.announcement["console"]["url"], Path(system.announcement["console"]["tokenFile"])
    assert file == system.shell.folder / "penstock-data" / "console.token"
    me = Request(f"{url}api/v1/me", headers={"Authorization": f"Bearer {file.read_text().strip()}"})
    with urlopen(me) as answer:
        assert json.loads(answer.read())["role"] == "admin"
    with urlopen(url) as answer:
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"


def test_doctor_finds_a_good_store(beside: Shell) -> None:
    found = findings(beside, code=0)
    assert {finding["grade"] for finding in found.values()} == {"ok"}
    assert found["ack levels"]["found"] == "memory, fsync"
    assert "tmq-" in found["domain main sessions"]["found"]
    assert "of this version" in found["functions"]["found"]
    assert "ms" in found["clock"]["found"]
    assert re.fullmatch(r"maxmemory \d+: half of .* MiB for other processes", found["memory"]["found"])
    assert beside.run("doctor").text.startswith("subject")


def test_show_and_list_report_owner_and_condition(beside: Shell) -> None:
    """Check that `show` and `list` report that the edge owns the queue and knows no peer."""
    name = "elsewhere"
    beside.run("queue", "create", name, "--remote-protocol", "rqp-mca", "--remote-queue-id", "71")
    beside.run("put", name, "x")

    async def work(store: Store) -> None:
        await store.open_domain().claims.reserve(await store.catalogue.find(name), "mca host 5", 60_000)

    beside.with_store(work)
    eventually(lambda: beside.stats(name)["condition"])
    stats = beside.run("queue", "show", name, "--json").object["stats"]
    assert stats["owned_by"].startswith("rqp-")
    assert stats["condition"] == "no_receiver: no peer is known"
    assert (stats["reserved_by"], 0 < stats["reserved_for_ms"] <= 60_000) == ("mca host 5", True)
    assert "no_receiver: no peer is known" in beside.run("queue", "list", name).text
    assert "reserved for" in beside.run("queue", "show", name).text


def test_rqp_send_timeout_reports_condition_and_queue(beside: Shell) -> None:
    """Check that a timeout without known machines reports condition and queue (rqp_cast.md 4.1)."""
    stays, number = declare(beside, "away", "rqp-cast", key=999), 999
    output = beside.run(
        "rqp", "send", "--key", str(number), "--wait", "--timeout", "6", "--json", "x", code=5
    )
    assert output.object == {"queue": stays, "state": "waits", "reason": "no_answer"}
    output = beside.run("rqp", "send", "--key", str(number), "--wait", "--timeout", "1.5", "y", code=5).err
    last = output.splitlines()[-1]
    assert last == (
        "penstock: no_answer: no machine is known that could be asked; not confirmed within 1.5 s: "
        f"the message is still in {stays}"
    )
    assert "waiting: no_answer: no machine is known that could be asked\n" in output
    assert sorted(body for body, _ in waiting(beside, stays)) == ["x", "y"]


# Outgoing queues of ring nodes: commands may inspect them, but neither use nor create them


@pytest.fixture(scope="module")
def internal(beside: Shell) -> str:
    """Return the internal queue of the running node."""

    def listed() -> list[str]:
        return [row["name"] for row in beside.run("queue", "list", "ring/*", "--json").objects]

    eventually(listed, pause_s=0.1)
    (name,) = listed()
    return name


def test_reserved_queue_names_are_refused_by_put_and_get(beside: Shell, internal: str) -> None:
    before = beside.run("queue", "show", internal, "--json").object
    for command in (["put", internal, "x"], ["get", internal]):
        assert RESERVED in beside.fails(*command, code=1)
    assert beside.run("queue", "show", internal, "--json").object["stats"] == before["stats"]


def test_reserved_queue_stays_while_its_node_runs(beside: Shell, internal: str) -> None:
    eventually(
        lambda: beside.run("queue", "show", internal, "--json").object["stats"]["owned_by"], pause_s=0.1
    )
    for command in (["delete", internal], ["delete", "--yes", internal], ["purge", "--yes", internal]):
        assert "its ring node is running; stop the node" in beside.fails("queue", *command, code=1)
    assert beside.run("queue", "show", internal, "--json").object["stats"]["owned_by"]


def test_reserved_queue_names_are_refused_by_create_and_apply(beside: Shell, internal: str) -> None:
    for name in (internal, "ring/1/another:8085"):
        assert RESERVED in beside.fails("queue", "create", name, code=1)
        documents = f"{DOCUMENT % 'beside'}---\n{DOCUMENT % name}".encode()
        output = beside.fails("queue", "apply", "-f", "-", code=1, stdin=documents)
        assert f"metadata.name: {RESERVED}" in output
    beside.run("queue", "show", "beside", code=4)


def test_reserved_queue_is_no_redrive_target(beside: Shell, internal: str) -> None:
    beside.run("queue", "create", "letters")
    bury(beside, "letters", ("rejected", b"a letter"))
    assert RESERVED in beside.fails("dead", "redrive", "letters", "--all", "--to", internal, code=1)
