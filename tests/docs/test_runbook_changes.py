"""What runbooks say is to be done with dead letters, done as it stands there, where nobody can be asked: in a pod."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.commands.test_dead import bury
from tests.cli.shell import Shell
from tests.docs.runbook_commands import PAGES, commands
from tests.operator.keeper import Keeper
from tests.servers import PROGRAMS, Server

OF_DEAD = [command for command in commands() if command.startswith("penstock dead ")]
REASON = re.compile(r"--reason (\w+)")
DROPPED = next(page for page in PAGES if page.stem == "PenstockDeadLettersDropped")


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    store = Server(next(iter(PROGRAMS)), tmp_path / "store").start()
    Keeper(store).declare("orders")
    yield Shell(tmp_path, {"REDIS_URL": store.url})
    store.end()


def words(command: str, **names: str) -> list[str]:
    """Behind `penstock`, without the file that they go to."""
    line, _, _ = command.removeprefix("penstock ").partition(" > ")
    return [names.get(word, word) for word in line.split()]


def test_there_are_some() -> None:
    verbs = {command.split()[2] for command in OF_DEAD}
    assert verbs == {"list", "purge", "redrive"}


@pytest.mark.parametrize("command", OF_DEAD)
def test_it_is_taken_and_does_it(shell: Shell, command: str) -> None:
    named = REASON.search(command)
    reason = named[1] if named and named[1] != "REASON" else "rejected"
    *_, last = bury(shell, "orders", (reason, b"1"), (reason, b"2"))
    done = shell.run(*words(command, QUEUE="orders", REASON=reason, ID=last))
    assert done.code == 0
    verb = command.split()[2]
    left = 2 if verb == "list" else 1 if re.search(r"QUEUE ID\b", command) else 0
    assert shell.stats("orders")["dead_letters"] == left
    assert shell.stats("orders")["ready"] == (2 - left if verb == "redrive" else 0)


def test_what_dies_between_a_copy_and_its_removal_stays(shell: Shell) -> None:
    """As PenstockDeadLettersDropped has it: a file, and then up to its last line."""
    here = [command for command in OF_DEAD if command in " ".join(DROPPED.read_text().split())]
    copy = next(command for command in here if " > FILE" in command)
    remove = next(command for command in here if " purge " in command)
    bury(shell, "orders", ("rejected", b"1"), ("rejected", b"2"))
    file = shell.run(*words(copy, QUEUE="orders")).out.splitlines()
    bury(shell, "orders", ("rejected", b"3"))
    shell.run(*words(remove, QUEUE="orders", ID=json.loads(file[-1])["id"]))
    assert [json.loads(line)["body"] for line in file] == ["1", "2"]
    (left,) = shell.run(*words(copy, QUEUE="orders")).objects
    assert left["body"] == "3"
