"""Test `penstock dead`: list, show, redrive, purge."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.store import INTERNAL_CLIENT, DeadLetters, Source, Store
from services.store.model import records as record
from tests.cli.shell import PATIENCE_S, Shell
from tests.servers import eventually

SEARCHES_S = 1.0  # of processor time: starting a command takes a fifth of it


def bury(shell: Shell, queue: str, *letters: tuple[str, bytes], origin: str = "tmq 10.0.0.7") -> list[str]:
    """Store dead letters of (reason, body); return their ids, oldest first."""

    async def work(store: Store) -> list[str]:
        found = await store.catalogue.find(queue)
        pipe = store.open_domain().pipe
        await pipe.ready()
        answers = []
        for reason, body in letters:
            answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            pipe.messages.bury(
                Source(INTERNAL_CLIENT), found, record.encode(body), origin, reason, "why", answer.set_result
            )
            answers.append(answer)
        assert set(await asyncio.gather(*answers)) == {None}
        return [letter.id async for letter in DeadLetters(store.get_domain(found.domain), found).matching()]

    return shell.with_store(work)


def bodies(shell: Shell, *arguments: str) -> list[str]:
    return [letter["body"] for letter in shell.run("dead", "list", *arguments, "--json").objects]


def test_dead_letters_are_listed_and_filtered(shell: Shell, queue: str) -> None:
    bury(shell, queue, ("rejected", b"a 1"), ("expired", b"b 2"))
    bury(shell, queue, ("expired", b"c \xff"), origin="ring 3")
    assert bodies(shell, queue) == ["a 1", "b 2", "YyD/"]
    assert bodies(shell, queue, "--reason", "expired") == ["b 2", "YyD/"]
    assert bodies(shell, queue, "--reason", "expired", "--reason", "rejected", "-n", "1") == ["a 1"]
    assert bodies(shell, queue, "--origin", "ring") == ["YyD/"]
    assert bodies(shell, queue, "--match", r"^[ab] \d$") == ["a 1", "b 2"]
    assert bodies(shell, queue, "--older-than", "1h") == []
    table = shell.run("dead", "list", queue, "-n", "2")
    assert "c \\xff" not in table.text
    assert table.err == "only the first 2 are shown; use -n 0 for all\n"


def test_ctrl_c_ends_a_catastrophic_regex(shell: Shell, queue: str) -> None:
    """Check that Ctrl-C ends a search with `re`, which would run for years and blocks other code."""
    bury(shell, queue, ("rejected", b"a" * 100))
    listing = shell.spawn("dead", "list", queue, "--match", "(a+)+b", stdout=-1, stderr=-1)
    try:
        eventually(lambda: _busy_s(listing.pid) > SEARCHES_S)
        listing.send_signal(signal.SIGINT)
        assert listing.wait(PATIENCE_S) == 130
    finally:
        listing.kill()
        out, error = listing.communicate()
    assert (out, error.strip()) == (b"", b"")


def _busy_s(pid: int) -> float:
    """Return the processor time that the process has used, in seconds."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def test_dead_letter_is_shown_with_all_fields(shell: Shell, queue: str) -> None:
    (identifier,) = bury(shell, queue, ("rejected", b"\x00body"))
    document = shell.run("dead", "show", queue, identifier, "--json").object
    assert {name: document[name] for name in ("reason", "error", "origin", "acquired", "failed")} == {
        "reason": "rejected",
        "error": "why",
        "origin": "tmq 10.0.0.7",
        "acquired": 0,
        "failed": 0,
    }
    assert "rejected" in shell.run("dead", "show", queue, identifier).text
    assert shell.run("dead", "show", queue, identifier, "--raw").out == b"\x00body"
    for missing in ("1-1", "nonsense"):
        assert shell.fails("dead", "show", queue, missing, code=4).startswith("not_found: ")


def test_redriven_letters_are_ready_again(shell: Shell, queue: str) -> None:
    first, _, third = bury(shell, queue, ("rejected", b"1"), ("expired", b"2"), ("expired", b"3"))
    dry = shell.run("dead", "redrive", queue, "--all", "--dry-run", "--json").object
    assert dry == {"dry_run": True, "matching": 3, "reasons": {"rejected": 1, "expired": 2}}
    done = shell.run("dead", "redrive", queue, third, first, "9-9", "--json").object
    assert done == {"queue": queue, "to": queue, "redriven": 2, "missing": 1}
    assert shell.run("get", queue, "--all").out == b"1\n3\n"
    shell.run("dead", "redrive", queue, "--reason", "expired")
    assert shell.run("get", queue, "--json").object["acquired"] == 1
    assert shell.fails("dead", "redrive", queue, "--all", code=4).startswith("not_found: ")
    assert shell.stats(queue)["redriven"] == 3


def test_redrive_into_another_queue(shell: Shell, queue: str, new_queue: Callable[..., str]) -> None:
    bury(shell, queue, ("rejected", b"x"))
    other, far = new_queue(), new_queue("--domain", "far")
    assert shell.fails("dead", "redrive", queue, "--all", "--to", far, code=1).startswith("domain_mismatch: ")
    assert shell.fails("dead", "redrive", queue, "--all", "--to", "missing", code=4).startswith(
        "queue_unknown: "
    )
    shell.run("dead", "redrive", queue, "--all", "--to", other)
    assert shell.run("get", other).out == b"x"


def test_dry_run_validates_the_target_too(shell: Shell, queue: str, new_queue: Callable[..., str]) -> None:
    bury(shell, queue, ("rejected", b"x"))
    full, far = new_queue("--max-length", "1"), new_queue("--domain", "far")
    shell.run("put", full, "y")
    for target, label in ((full, "queue_full: "), (far, "domain_mismatch: ")):
        output = shell.fails("dead", "redrive", queue, "--all", "--to", target, "--dry-run", code=1)
        assert output.startswith(label)
    assert bodies(shell, queue) == ["x"]


def test_stopped_redrive_continues_when_repeated(shell: Shell, new_queue: Callable[..., str]) -> None:
    small = new_queue("--max-length", "2")
    bury(shell, small, *(("rejected", b"%d" % number) for number in range(5)))
    error = shell.fails("dead", "redrive", small, "--all", code=1)
    assert error.startswith("queue_full: ")
    assert "3 left: run the same command again to continue" in error
    assert shell.run("get", small, "--all").out == b"0\n1\n"
    shell.run("dead", "redrive", small, "--all", code=1)
    assert shell.run("get", small, "--all").out == b"2\n3\n"
    shell.run("dead", "redrive", small, "--all")
    assert shell.run("get", small, "--all").out == b"4\n"


def test_redrive_keeps_its_rate_limit(shell: Shell, queue: str) -> None:
    bury(shell, queue, *(("rejected", b"x") for _ in range(20)))
    began = time.monotonic()
    shell.run("dead", "redrive", queue, "--all", "--rate", "10/s")
    assert time.monotonic() - began >= 1.8
    assert shell.stats(queue)["ready"] == 20


def test_redrive_keeps_order(shell: Shell, queue: str) -> None:
    bury(shell, queue, *(("rejected", b"%d" % number) for number in range(1001)))
    shell.run("dead", "redrive", queue, "--all")
    assert shell.run("get", queue, "--all").out == b"".join(b"%d\n" % number for number in range(1001))


def test_purge_deletes_letters(shell: Shell, queue: str) -> None:
    bury(shell, queue, ("rejected", b"1"), ("expired", b"2"))
    assert "--yes" in shell.fails("dead", "purge", queue, "--all", code=2)
    done = shell.run("dead", "purge", queue, "--reason", "expired", "--yes", "--json").object
    assert done == {"queue": queue, "purged": 1}
    assert bodies(shell, queue) == ["1"]
    with shell.terminal("dead", "purge", queue, "--all") as terminal:
        eventually(lambda: terminal.sees("Type the queue's name to confirm:"))
        terminal.type(f"{queue}\n")
        assert terminal.end() == 0
    assert shell.stats(queue)["dead_letters"] == 0
    assert shell.stats(queue)["purged"] == 2


def test_later_dead_letters_stay(shell: Shell, queue: str) -> None:
    bury(shell, queue, ("rejected", b"1"), ("expired", b"2"))
    with shell.terminal("dead", "purge", queue, "--all") as terminal:
        eventually(lambda: terminal.sees("2 dead letters of"))
        bury(shell, queue, ("rejected", b"3"))
        terminal.type(f"{queue}\n")
        assert terminal.end() == 0
    assert bodies(shell, queue) == ["3"]


def test_until_selects_letters_up_to_an_id(shell: Shell, queue: str) -> None:
    _, second, _ = bury(shell, queue, ("rejected", b"1"), ("expired", b"2"), ("rejected", b"3"))
    until = ("--until", second)
    assert bodies(shell, queue, *until) == ["1", "2"]
    assert (
        shell.run("dead", "redrive", queue, *until, "--reason", "expired", "--json").object["redriven"] == 1
    )
    dry = shell.run("dead", "purge", queue, *until, "--dry-run", "--json").object
    assert dry == {"dry_run": True, "matching": 1, "reasons": {"rejected": 1}}
    shell.run("dead", "purge", queue, *until, "--yes")
    assert bodies(shell, queue) == ["3"]
    assert shell.fails("dead", "purge", queue, *until, "--yes", code=4).startswith("not_found: ")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["redrive"], "select letters with"),
        (["redrive", "--all", "--reason", "expired"], "--all excludes"),
        (["purge"], "select letters with"),
        (["redrive", "--all", "--rate", "fast"], "such as 100/s"),
        (["redrive", "--all", "--rate", "0/s"], "such as 100/s"),
        (["list", "--older-than", "5"], "such as 30m"),
        (["list", "--match", "("], "not a regular expression"),
        (["purge", "--until", "yesterday"], "the id of a dead letter"),
        (["purge", "--all", "--until", "1-1"], "--all excludes"),
    ],
)
def test_wrong_use(shell: Shell, queue: str, arguments: list[str], text: str) -> None:
    command, *options = arguments
    assert text in shell.fails("dead", command, queue, *options, code=2)
