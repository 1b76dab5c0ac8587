"""Every protocol continues at once after steps of any clock and after a suspend (docs/guarantees.md, Clocks)."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.clocks.clocks import Clocks
from tests.clocks.held import BODY, KILLED, LIVE, SETTLED
from tests.clocks.protocols import BODIES, CHANGES, KILLS, PROTOCOLS
from tests.servers import Server

ROOT = Path(__file__).parents[2]
RUN_S = 300.0


@pytest.fixture(scope="module")
def matrix(clocks: Clocks, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the results of one process with all edges during all changes."""
    folder = tmp_path_factory.mktemp("protocols")
    own = Clocks(tmp_path_factory.mktemp("edges"))
    server = Server("valkey", folder / "store", environment=clocks.environment).start()
    command = [sys.executable, "-m", "tests.clocks.protocols", server.url, folder, clocks.path, own.path]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **own.environment},
            capture_output=True,
            text=True,
            timeout=RUN_S,
            check=False,
        )
    finally:
        server.end()
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("change", CHANGES)
def test_messages_arrive_once_and_in_order(matrix: dict[str, Any], change: str, protocol: str) -> None:
    assert matrix["found"][change][protocol] == [body.decode() for body in BODIES]


@pytest.mark.parametrize("kind", LIVE)
@pytest.mark.parametrize("change", CHANGES)
def test_lease_can_be_used_after_a_clock_step(matrix: dict[str, Any], change: str, kind: str) -> None:
    """A taken message is settled and not redelivered; an assignment is used."""
    assert matrix["held"][change][kind] == ([] if kind in SETTLED else [BODY.decode()])


@pytest.mark.parametrize("kind", KILLED)
@pytest.mark.parametrize("change", KILLS)
def test_messages_of_a_killed_remote_edge_return(matrix: dict[str, Any], change: str, kind: str) -> None:
    """Within its lease, not after the step."""
    assert matrix["returned"][change][kind] == [BODY.decode()]


@pytest.mark.parametrize("change", CHANGES)
def test_only_steps_of_the_stores_clock_are_reported(matrix: dict[str, Any], change: str) -> None:
    assert matrix["steps"][change] == int(change.startswith("store"))
