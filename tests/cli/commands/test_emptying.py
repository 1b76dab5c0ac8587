"""Test `penstock queue purge`: ready messages are deleted permanently, after confirmation."""

from __future__ import annotations

from collections.abc import Callable

from tests.cli.shell import Shell
from tests.servers import eventually


def _ready(shell: Shell, queue: str) -> int:
    return int(shell.stats(queue)["ready"])


def test_purge_deletes_ready_messages(shell: Shell, queue: str) -> None:
    shell.run("put", queue, "--lines", stdin=b"one\ntwo\n")
    assert (
        shell.run("queue", "purge", queue, "--dry-run").text
        == "2 messages would be removed; 0 in flight would stay\n"
    )
    document = shell.run("queue", "purge", queue, "--dry-run", "--json").object
    assert document == {"dry_run": True, "ready": 2, "in_flight": 0}
    assert "use --yes" in shell.fails("queue", "purge", queue, code=2)
    assert _ready(shell, queue) == 2
    assert shell.run("queue", "purge", queue, "--yes").text == f"removed 2 messages of {queue}\n"
    assert (_ready(shell, queue), shell.stats(queue)["emptied"]) == (0, 2)
    done = shell.run("queue", "purge", queue, "--yes", "--json").object
    assert done == {"queue": queue, "removed": 0, "bytes": 0}


def test_terminal_confirmation_needs_the_name(shell: Shell, new_queue: Callable[..., str]) -> None:
    name = new_queue()
    shell.run("put", name, "one")
    for typed, code, left in ((f"{name}x", 2, 2), (name, 0, 1)):
        with shell.terminal("queue", "purge", name) as terminal:
            eventually(lambda terminal=terminal: terminal.sees("Type the queue's name to confirm:"))
            shell.run("put", name, "later")  # it was not counted, and stays
            terminal.type(f"{typed}\n")
            assert terminal.end() == code
        assert _ready(shell, name) == left


def test_unknown_queue(shell: Shell) -> None:
    assert shell.fails("queue", "purge", "missing", "--yes", code=4).startswith("queue_unknown: ")
