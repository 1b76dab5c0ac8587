"""Test every command as any user id, in any encoding, with any standard stream closed (services/kit/startup.py).

Exit statuses of docs/cli.md apply: 74 for a result that cannot be written, otherwise the usual one. With `--json` every
result is one JSON object a line.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from services.cli.terminal.exits import Exit
from tests.cli.hostile import UID, Hostile, environment_of
from tests.cli.leaves import FORMS, FRIEND, LEAVES, NAME, ROWS, SERVICES, fill, flags, leaf_of
from tests.cli.shell import PATIENCE_S, PROGRAM, Shell
from tests.servers import Server, eventually, free_port
from tests.sysv.local import Keys

FILE = "dead export"  # writes a file of another format, also with --json
NAMELESS = ["unshare", "--user", f"--map-user={UID}", f"--map-group={UID}"]
ESCAPED = NAME.encode("ascii", "backslashreplace")


def test_table_has_every_command() -> None:
    done = {leaf_of(row.words) for row in ROWS if row.status == Exit.OK}
    assert done - {""} | {leaf for leaf in LEAVES if leaf.split()[0] in SERVICES} == LEAVES


def test_table_has_every_option() -> None:
    """Check that the table has every option, except those of services, which do not change results."""
    used = {(leaf_of(row.words), word) for row in (*ROWS, *FORMS) for word in row.words.split()}
    assert {(leaf, flag) for leaf, flag in flags() if leaf.partition(" ")[0] not in SERVICES} <= used


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server("valkey", tmp_path_factory.mktemp("startup")).start()
    yield server
    server.end()


@pytest.fixture
def shell(tmp_path: Path, store: Server) -> Shell:
    return Shell(tmp_path, {"REDIS_URL": store.url})


@pytest.fixture
def known(shell: Shell, store: Server) -> Mapping[str, str]:
    """Return the values of placeholders in rows."""
    store.clear()
    return fill(shell)


def outcome(shell: Shell, words: list[str], closed: Collection[int]) -> tuple[int, bytes, bytes]:
    status, out, err = Hostile(shell, words, closed).end()
    assert not any(fault in err for fault in (b"Traceback", b"Exception ignored")), (words, err)
    err.decode("ascii")
    return status, out, err


def test_nameless_user_in_ascii_with_closed_streams(shell: Shell, known: Mapping[str, str]) -> None:
    """Check commands with a closed output, or closed messages for rows without a result."""
    wrong = []
    for row in ROWS:
        closed = (0, 1) if row.writes else (2,)
        status, out, err = outcome(shell, row.arguments(known), closed)
        expected = Exit.IO if row.writes else row.status
        if (status, bool(out), bool(err)) != (expected, False, row.writes):
            wrong.append((row.words, status, out, err))
    assert wrong == [], "\n".join(map(repr, wrong))


@pytest.mark.parametrize(
    ("words", "result", "status"),
    [
        ("put q x", "/dev/full", Exit.IO),
        ("queue show nosuch", "/dev/null", Exit.NOT_FOUND),
        ("queue nosuch", "/dev/null", Exit.USAGE),
    ],
)
def test_unwritable_messages_keep_the_exit_code(
    shell: Shell, known: Mapping[str, str], words: str, result: str, status: Exit
) -> None:
    shell.run("queue", "create", "q")
    with open(result, "wb") as stdout, open("/dev/full", "wb") as stderr:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "services.cli", *words.split()],
            env=shell.environment,
            stdout=stdout,
            stderr=stderr,
            check=False,
            timeout=PATIENCE_S,
        )
    assert done.returncode == status


def test_json_is_one_object_per_line(shell: Shell, known: Mapping[str, str]) -> None:
    """Check that results and failures are one JSON object a line, with complete names in any encoding."""
    wrong = []
    for row in [*FORMS, *ROWS[1:]]:
        status, out, err = outcome(shell, [*row.arguments(known), "--json"], (0,))
        lines = [] if leaf_of(row.words) == FILE else out.splitlines()
        if (
            status != row.status
            or not all(map(is_object, [*lines, *err.splitlines()]))
            or row.writes != bool(out)
        ):
            wrong.append((row.words, status, out, err))
    assert wrong == [], "\n".join(map(repr, wrong))
    assert json.loads(outcome(shell, ["queue", "show", NAME, "--json"], ())[1])["name"] == NAME


def is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def test_missing_characters_are_escaped_and_documents_read_back(
    shell: Shell, known: Mapping[str, str]
) -> None:
    assert ESCAPED in outcome(shell, ["queue", "list"], ())[1]
    turned = "turned\u202e"  # at a terminal it would reverse the rest of the line
    shell.run("queue", "create", turned)
    for kind, name in (("queue", NAME), ("peer", FRIEND), ("queue", turned)):
        written = [outcome(shell, [kind, "show", name], ())[1]]
        written.append(shell.run(kind, "show", name, PYTHONIOENCODING="utf-8").out)
        for document in written:
            assert yaml.safe_load(document.partition(b"\n\n")[0])["metadata"]["name"] == name
        assert (name.encode() in written[1]) is (name != turned)
    outcome(shell, ["put", NAME, "y"], (0,))
    assert shell.run("peek", NAME, "--json").object["origin"] == f"cli {UID}@{socket.gethostname()}"


@pytest.mark.parametrize(("words", "closed"), [("queue create 注文", (2,)), ("config", (0, 1, 2))])
def test_new_interpreter_behaves_the_same(
    shell: Shell, known: Mapping[str, str], words: str, closed: tuple[int, ...]
) -> None:
    """Check that a new interpreter behaves as the forked commands of the tests above do."""
    closing = " ".join(f"{number}>&-" for number in closed)
    program = [
        *NAMELESS,
        "sh",
        "-c",
        f'exec "$@" {closing}',
        "sh",
        *PROGRAM[:-1],
        "services.cli",
        *words.split(),
    ]
    real = subprocess.run(
        program, cwd=shell.folder, env=environment_of(shell), stdin=subprocess.DEVNULL, capture_output=True,
        timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert (real.returncode, real.stdout, real.stderr) == outcome(shell, words.split(), closed)


@pytest.mark.parametrize("leaf", ["up", "sysv", "console", "serve tmq"])
def test_service_without_streams_drains_at_sigterm(shell: Shell, known: Mapping[str, str], leaf: str) -> None:
    keys, more = Keys(), ["--json"]
    if leaf == "sysv":
        more += ["--in", f"{keys.new():#x}:{NAME}"]
    elif leaf == "up":
        more += ["--set", "console.enabled=false"]
        del shell.environment["REDIS_URL"]
    assert drained(shell, [*leaf.split(), *more], "health.port", (0, 1, 2)) == (0, b"", b"")
    keys.remove_all()


def drained(shell: Shell, words: list[str], port: str, closed: Collection[int]) -> tuple[int, bytes, bytes]:
    """Return exit status and outputs after SIGTERM, sent as soon as the command listens on that setting's port."""
    number = free_port()
    command = Hostile(shell, [*words, "--set", f"{port}={number}"], closed)
    try:
        eventually(lambda: socket.create_connection(("127.0.0.1", number), 5).close() is None)
        os.kill(command.process.pid, signal.SIGTERM)
        return command.end()
    finally:
        command.process.kill()


def test_console_prints_its_address_as_json(shell: Shell, known: Mapping[str, str]) -> None:
    status, out, _ = drained(shell, ["console", "--json", "--set", "health.port=0"], "console.port", (0,))
    document = json.loads(out)
    assert (status, document["tokenFile"]) == (0, str(shell.folder / "penstock-data" / "console.token"))
    assert document["url"].startswith("http://127.0.0.1:")
