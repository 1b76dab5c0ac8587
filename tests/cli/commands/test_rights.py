"""Test that `penstock store rights` prints arguments that ACL SETUSER accepts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import Shell
from tests.servers import SentinelServer, Server, eventually
from tests.topologies import SERVICE, Cluster, Replicated


def printed(shell: Shell, *words: str) -> str:
    return shell.run("store", "rights", *words).text.strip()


def test_printed_acl_suffices_for_edges(alone: Shell, server: Server) -> None:
    line = printed(alone, "--user", "mover")
    assert server.call(*line.split(), ">secret") == b"OK"
    with server.client() as client:
        assert client.call("AUTH", "mover", "secret") == b"OK"
        assert client.call("EXISTS", "ps:{main}:epoch") == 0


PASSWORD = "sec/ret@1"  # must be quoted in a URL
CATALOGUE = "ps:{registry}:epoch"


@pytest.fixture(params=["sentinel", "cluster"])
def topology(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Replicated | Cluster]:
    """Yield Sentinels or a Cluster; all but one of the first three servers keep their users in a file."""
    made: Replicated | Cluster
    made = (
        Replicated("redis", tmp_path)
        if request.param == "sentinel"
        else Cluster("redis", tmp_path, replicated=True)
    )
    for node in (made.nodes[0], made.nodes[2]):
        node.directory.mkdir(parents=True)
        (node.directory / "users.acl").write_text("")
        node.options["aclfile"] = str(node.directory / "users.acl")
    try:
        yield made.start()
    finally:
        made.end()


def users(shell: Shell, store: str, code: int) -> dict[str, Any]:
    found = shell.run("doctor", "--json", code=code, REDIS_URL=store).object["findings"]
    row: dict[str, Any] = next(one for one in found if one["subject"] == "users")
    return row


def well(sentinel: SentinelServer, old: Server) -> bool:
    """Return whether a Sentinel knows another primary that is reachable."""
    flat = sentinel.call("SENTINEL", "MASTER", SERVICE)
    state = dict(zip(flat[::2], flat[1::2], strict=True))
    return int(state[b"port"]) != old.port and state[b"flags"] == b"master"


def fail_over(topology: Replicated | Cluster, old: Server) -> None:
    """Kill the primary of the catalogue; return after another server has taken over."""
    old.kill9()
    if isinstance(topology, Replicated):
        eventually(lambda: all(well(sentinel, old) for sentinel in topology.sentinels))
    else:
        replica = topology.replicas[topology.nodes.index(old)]
        eventually(lambda: replica.info("replication")["role"] == "master")


def test_user_is_set_on_every_server_and_survives_failovers(
    alone: Shell, topology: Replicated | Cluster
) -> None:
    """Check that the user is set on every server: Redis does not replicate users to the next primary."""
    admin = topology.url
    edge = admin.replace("://", "://edge:sec%2Fret%401@")
    servers = [*topology.nodes, *(topology.replicas if isinstance(topology, Cluster) else ())]
    alone.run("store", "init", REDIS_URL=admin)
    old = topology.primary() if isinstance(topology, Replicated) else topology.holder(CATALOGUE)
    assert old is not topology.nodes[1]
    old.call(*printed(alone).split(), f">{PASSWORD}")
    row = users(alone, admin, 1)
    assert all(f"127.0.0.1:{node.port}" in row["found"] for node in servers if node is not old)
    assert "store rights --apply" in row["advice"]
    assert "refuses the user of this URL" in users(alone, edge, 1)["found"]

    apply = ("store", "rights", "--apply", "--password-file", "-")
    applied = alone.run(*apply, stdin=f"{PASSWORD}\n".encode(), REDIS_URL=admin).text
    assert applied.count("user edge is set, stored") == len(servers)
    assert applied.count("in its ACL file") == 2
    assert users(alone, admin, 0)["found"] == f"default, edge: the same on {len(servers)} servers"
    assert "can log in on each" in users(alone, edge, 0)["found"]
    alone.environment["REDIS_URL"] = edge
    alone.run("queue", "create", "orders")
    assert alone.run("queue", "show", "orders", "--json").object["ackLevel"] == "replicated:1"
    alone.run("put", "orders", "one")
    fail_over(topology, old)
    alone.run("put", "orders", "two")
    ended = alone.run(*apply, stdin=PASSWORD.encode(), code=1, REDIS_URL=admin)
    assert f"127.0.0.1:{old.port}: user edge could not be set there" in ended.err
    old.restart()
    assert b"user edge on" in b"".join(old.call("ACL", "LIST"))
    assert alone.run("get", "orders", "--all").text.split() == ["one", "two"]


def test_apply_and_password_file_require_each_other(alone: Shell) -> None:
    assert "require each other" in alone.fails("store", "rights", "--apply", code=2)
    alone.write("empty", "\n")
    assert "is empty" in alone.fails("store", "rights", "--apply", "--password-file", "empty", code=2)
