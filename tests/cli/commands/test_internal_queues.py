"""Queues in which ring nodes keep what they have to send: the administrator looks, but neither uses nor makes one."""

from __future__ import annotations

import pytest

from tests.cli.commands.test_dead import bury
from tests.cli.shell import Shell
from tests.servers import eventually

RESERVED = "names that begin with ring/ are for the queues of ring nodes"
DOCUMENT = "apiVersion: penstock.dev/v1alpha1\nkind: Queue\nmetadata: {name: '%s'}\n"


@pytest.fixture(scope="module")
def internal(shell: Shell) -> str:
    """That of the node that runs here."""

    def listed() -> list[str]:
        return [row["name"] for row in shell.run("queue", "list", "ring/*", "--json").objects]

    eventually(listed)
    (name,) = listed()
    return name


def test_none_is_used(shell: Shell, internal: str) -> None:
    before = shell.run("queue", "show", internal, "--json").object
    for command in (["put", internal, "x"], ["get", internal]):
        assert RESERVED in shell.fails(*command, code=1)
    assert shell.run("queue", "show", internal, "--json").object["stats"] == before["stats"]


def test_none_is_deleted_or_emptied_while_its_node_runs(shell: Shell, internal: str) -> None:
    eventually(lambda: shell.run("queue", "show", internal, "--json").object["stats"]["owned_by"])
    for command in (["delete", internal], ["delete", "--yes", internal], ["purge", "--yes", internal]):
        assert "its ring node is running; stop the node" in shell.fails("queue", *command, code=1)
    assert shell.run("queue", "show", internal, "--json").object["stats"]["owned_by"]


def test_none_is_made_or_changed(shell: Shell, internal: str) -> None:
    for name in (internal, "ring/1/another:8085"):
        assert RESERVED in shell.fails("queue", "create", name, code=1)
        documents = f"{DOCUMENT % 'beside'}---\n{DOCUMENT % name}".encode()
        told = shell.fails("queue", "apply", "-f", "-", code=1, stdin=documents)
        assert f"metadata.name: {RESERVED}" in told
    shell.run("queue", "show", "beside", code=4)


def test_none_is_the_goal_of_a_redrive(shell: Shell, queue: str, internal: str) -> None:
    bury(shell, queue, ("rejected", b"a letter"))
    assert RESERVED in shell.fails("dead", "redrive", queue, "--all", "--to", internal, code=1)
