"""Run the runbooks' commands for dead letters as written, without a prompt, as in a pod."""

from __future__ import annotations

import itertools
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


_numbers = itertools.count()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(next(iter(PROGRAMS)), tmp_path_factory.mktemp("store")).start()
    yield server
    server.end()


@pytest.fixture
def shell(tmp_path: Path, store: Server) -> Shell:
    return Shell(tmp_path, {"REDIS_URL": store.url})


@pytest.fixture
def queue(store: Server) -> str:
    """Return an empty queue of the test's own."""
    name = f"orders{next(_numbers)}"
    Keeper(store).declare(name)
    return name


def words(command: str, **names: str) -> list[str]:
    """Return the words after `penstock`, without the file that the output goes to."""
    line, _, _ = command.removeprefix("penstock ").partition(" > ")
    return [names.get(word, word) for word in line.split()]


def test_there_are_some() -> None:
    verbs = {command.split()[2] for command in OF_DEAD}
    assert verbs == {"list", "purge", "redrive"}


@pytest.mark.parametrize("command", OF_DEAD)
def test_runbook_command_changes_dead_letters(shell: Shell, queue: str, command: str) -> None:
    named = REASON.search(command)
    reason = named[1] if named and named[1] != "REASON" else "rejected"
    *_, last = bury(shell, queue, (reason, b"1"), (reason, b"2"))
    done = shell.run(*words(command, QUEUE=queue, REASON=reason, ID=last))
    assert done.code == 0
    verb = command.split()[2]
    left = 2 if verb == "list" else 1 if re.search(r"QUEUE ID\b", command) else 0
    assert shell.stats(queue)["dead_letters"] == left
    assert shell.stats(queue)["ready"] == (2 - left if verb == "redrive" else 0)


def test_purge_keeps_dead_letters_added_after_the_copy(shell: Shell, queue: str) -> None:
    """Check that purging up to a file's last line keeps later dead letters (PenstockDeadLettersDropped)."""
    here = [command for command in OF_DEAD if command in " ".join(DROPPED.read_text().split())]
    copy = next(command for command in here if " > FILE" in command)
    remove = next(command for command in here if " purge " in command)
    bury(shell, queue, ("rejected", b"1"), ("rejected", b"2"))
    file = shell.run(*words(copy, QUEUE=queue)).out.splitlines()
    bury(shell, queue, ("rejected", b"3"))
    shell.run(*words(remove, QUEUE=queue, ID=json.loads(file[-1])["id"]))
    assert [json.loads(line)["body"] for line in file] == ["1", "2"]
    (left,) = shell.run(*words(copy, QUEUE=queue)).objects
    assert left["body"] == "3"
