"""The chart's own store: its scripts and settings, with real servers. docs/chart.md, "The store"."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError, ResponseError
from redis.retry import Retry

from tests.chart.chart import CHART, NAME, nested, render
from tests.chart.places import places
from tests.chart.redis_pod import ADMIN, EDGE, Pod
from tests.cli.shell import Shell, running
from tests.servers import eventually, free_port

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["valkey", "redis"])
def pod(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pod]:
    pod = Pod(tmp_path, request.param)
    assert not pod.is_ready()
    pod.start()
    try:
        eventually(pod.is_ready)
        yield pod
    finally:
        pod.end(signal.SIGKILL)


def test_own_store_meets_the_requirements(pod: Pod) -> None:
    """Check that the chart's store meets the requirements (docs/operations.md, "A store of your own", 1)."""
    with pod.client("admin", ADMIN) as admin:
        settings: Any = admin.config_get()
        wanted = {
            "appendonly": "yes",
            "appendfsync": "always",
            "no-appendfsync-on-rewrite": "no",
            "maxmemory-policy": "noeviction",
            "maxmemory": str(512 << 20),
        }
        assert {name: settings[name] for name in wanted} == wanted


def test_acknowledged_data_survives_a_kill(pod: Pod, tmp_path: Path) -> None:
    """Check that data survives a kill: Redis 7.0 skips transactions of functions if `default` has no rights."""
    folder = tmp_path / "shell"
    folder.mkdir()
    administrator = Shell(folder, {"REDIS_URL": pod.url("admin", ADMIN)})
    edge = Shell(folder, {"REDIS_URL": pod.url("edge", EDGE)})
    administrator.run("store", "init")
    edge.run("queue", "create", "orders")
    edge.run("put", "orders", "kept")
    pod.end(signal.SIGKILL)
    pod.start()
    eventually(pod.is_ready)
    assert edge.run("get", "orders").out == b"kept"


def test_successor_waits_for_the_old_server(pod: Pod) -> None:
    """Check that a successor waits for the old server of a pod deleted by force, as two would lose messages."""
    first, older = pod.process, pod.port
    assert first is not None
    pod.port = free_port()
    pod.start()
    given = pod.folder / "output"
    eventually(lambda: "waits until it has ended" in given.read_text())
    assert not pod.is_ready()
    with Redis(port=older, username="admin", password=ADMIN, retry=Retry(NoBackoff(), 0)) as admin:
        admin.set("late", "1")
    first.kill()
    first.wait(30)
    eventually(pod.is_ready)
    with pod.client("admin", ADMIN) as admin:
        assert admin.get("late") == "1"


def test_rights_of_the_users(pod: Pod) -> None:
    with (
        pytest.raises((AuthenticationError, ResponseError)),
        Redis(port=pod.port, retry=Retry(NoBackoff(), 0)) as anonymous,
    ):
        anonymous.ping()
    with pytest.raises(RedisError), pod.client("edge", "wrong") as client:
        client.ping()
    with pod.client("probe", "any password") as probe:
        assert probe.ping()
        with pytest.raises(NoPermissionError):
            probe.get("ps:{main}:x")
    with pod.client("edge", EDGE) as edge:
        assert edge.get("ps:{main}:x") is None
        for command in (("CONFIG", "GET", "*"), ("FLUSHALL",), ("GET", "others")):
            with pytest.raises(NoPermissionError):
                edge.execute_command(*command)
    assert pod.users.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("pod", ["redis"], indirect=True)
def test_edge_user_suffices_for_edges_and_test(pod: Pod, tmp_path: Path) -> None:
    """Check this with a store set up by an administrator, as by the operator; also without creation by clients."""
    folder = tmp_path / "shell"
    folder.mkdir()
    Shell(folder).run("store", "init", REDIS_URL=pod.url("admin", ADMIN))
    none = ("edges.tmq.create.allowed=false", "edges.ring.clients.create.allowed=false")
    words = [word for given in none for word in ("--set", given)]
    with running(Shell(folder, {"REDIS_URL": pod.url("edge", EDGE)}), *words) as up:
        script = CHART / "files" / "scripts" / "exchange.py"
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "REDIS_URL": pod.url("edge", EDGE),
            **places(up),
        }
        command = [sys.executable, str(script)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert up.shell.run("queue", "list", "--json").objects == []
    assert done.returncode == 0, done
    assert done.stdout.count(": sent and received") == 4


@pytest.mark.parametrize("password", ["", "two words", "quoted'", "#" + "a" * 64])
def test_password_unusable_in_a_url_is_reported(tmp_path: Path, password: str) -> None:
    """Check that a password in a user's Secret, which the schema cannot check, is reported if unusable in a URL."""
    pod = Pod(tmp_path, "redis")
    pod.environment["EDGE_PASSWORD"] = password
    pod.start()
    assert pod.process is not None
    assert pod.process.wait(30) == 2
    assert (
        tmp_path / "output"
    ).read_text().strip() == "passwords have letters, digits and _.~- only, and are not empty"


def test_own_settings_override_the_charts() -> None:
    config = nested("redis.config", {"maxclients": 50, "hz": 20})
    text = render(config)[f"ConfigMap/{NAME}-redis"]["data"]["redis.conf"]
    assert {"maxclients 50", "hz 20", "appendfsync always"} <= set(text.splitlines())
