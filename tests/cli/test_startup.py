"""Every command as any user id, in any encoding, with any standard stream closed (services/kit/startup.py).

Exit statuses of docs/cli.md hold: 74 for a result that cannot be written, the usual one for everything else.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from services.cli.exits import Exit
from services.cli.main import MODULES
from tests.cli.shell import PATIENCE_S, Shell
from tests.servers import Server, eventually, free_port

NAME = "注文"
UID = 123_456
NAMELESS = ["unshare", "--user", f"--map-user={UID}", f"--map-group={UID}"]
PROGRAM = [sys.executable, "-P", "-m", "services.cli"]
MISSING, REFUSED, USAGE = Exit.NOT_FOUND, Exit.REFUSED, Exit.USAGE
# words, the usual exit status, whether a result is written to standard output
COMMANDS: list[tuple[Sequence[str], int, bool]] = [
    (["--help"], 0, True),
    (["queue", "list"], 0, True),
    (["queue", "show", NAME], 0, True),
    (["queue", "create", NAME], REFUSED, False),  # it is there already
    (["queue", "apply", "--file", "-"], USAGE, False),  # nothing comes from standard input
    (["queue", "purge", NAME, "--yes"], 0, True),
    (["queue", "release", NAME], REFUSED, False),  # it is not reserved
    (["queue", "delete", "nowhere", "--yes"], MISSING, False),
    (["peer", "list"], 0, True),
    (["put", NAME, NAME], 0, True),
    (["peek", NAME], 0, True),
    (["get", NAME], 0, True),
    (["dead", "list", NAME], 0, True),
    (["dead", "export", NAME, "--garbage-msg"], 0, False),
    (["dead", "import", NAME], USAGE, False),  # it says no format
    (["dead", "redrive", NAME, "--all"], MISSING, False),
    (["dead", "purge", NAME, "--all", "--yes"], MISSING, False),
    (["rqp", "send", "nowhere", "x"], USAGE, False),
    (["log", "show"], MISSING, False),
    (["ring", "status"], MISSING, False),
    (["report"], MISSING, False),
    (["config"], 0, True),
    (["doctor"], 0, True),
    (["store", "init"], 0, True),
    (["store", "rights"], 0, True),
]


@pytest.fixture
def shell(tmp_path: Path, server: Server) -> Shell:
    shell = Shell(tmp_path, {"REDIS_URL": server.url})
    shell.run("store", "init")
    shell.run("queue", "create", NAME)
    return shell


def start(shell: Shell, words: Sequence[str], *closed: int, **more: str) -> subprocess.Popen[bytes]:
    environment = {**shell.environment, "PYTHONIOENCODING": "ascii", **more}
    for name in ("USER", "LOGNAME", "LNAME", "USERNAME", "HOME"):
        environment.pop(name, None)
    closing = " ".join(f"{number}>&-" for number in closed)
    return subprocess.Popen(
        [*NAMELESS, "sh", "-c", f'exec "$@" {closing}', "sh", *PROGRAM, *words],
        cwd=shell.folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def finish(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE_S)
    assert b"Traceback" not in err, err
    return process.returncode, out.decode("utf-8"), err.decode("ascii")


def test_every_command_is_in_the_table() -> None:
    assert {words[0] for words, _, _ in COMMANDS} | {"up", "serve", "sysv", "console"} >= set(MODULES)


def check_all(shell: Shell, *closed: int) -> None:
    """Run every command with these streams closed; what each should be is in the table."""
    wrong = []
    for words, status, writes in COMMANDS:
        found, out, err = finish(start(shell, words, *closed))
        expected = (Exit.IO if writes else status) if 1 in closed else status
        if found != expected or (1 not in closed and bool(out) != writes):
            wrong.append((words, found, out, err))
    assert wrong == [], "\n".join(map(repr, wrong))


def test_a_nameless_user_without_input_in_an_encoding_that_lacks_the_name(shell: Shell) -> None:
    check_all(shell, 0)
    assert r"\u6ce8\u6587" in finish(start(shell, ["queue", "list"], 0))[1]
    finish(start(shell, ["put", NAME, "y"]))
    assert shell.run("peek", NAME, "--json").object["origin"] == f"cli {UID}@{socket.gethostname()}"


def test_closed_outputs_are_74_where_there_is_a_result_to_write(shell: Shell) -> None:
    check_all(shell, 0, 1, 2)


def test_a_closed_standard_error_changes_nothing_else(shell: Shell) -> None:
    for words, status in ((["queue", "list"], 0), (["get", NAME], MISSING)):
        assert finish(start(shell, words, 2))[0] == status


def test_an_edge_without_any_stream_drains_at_sigterm(shell: Shell) -> None:
    port = free_port()
    listener = {"PENSTOCK_EDGES__TMQ__LISTENERS__DOCUMENT__PORT": str(port)}
    process = start(shell, ["serve", "tmq"], 0, 1, 2, **listener)
    eventually(lambda: socket.create_connection(("127.0.0.1", port), 5).close() is None)
    process.send_signal(signal.SIGTERM)
    assert finish(process)[0] == 0


def test_up_without_any_stream_runs_and_stops(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    process = start(shell, ["up"], 0, 1, 2)
    lock = tmp_path / "penstock-data" / "up.lock"
    eventually(lambda: lock.exists() and json.loads(lock.read_text() or "{}").get("url"))
    eventually(lambda: finish(start(shell, ["put", "none", "x"]))[0] == MISSING)
    process.send_signal(signal.SIGTERM)
    assert finish(process)[0] == 0
