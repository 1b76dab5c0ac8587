"""`penstock doctor` compares users' rights on all servers, however each server words them."""

from __future__ import annotations

from pathlib import Path

from services.store.redis.connect import Connector
from services.store.redis.probe import Grade
from services.store.redis.rights import acl_rules
from services.store.redis.users import apply_user, check_users
from tests.servers import Server
from tests.topologies import Replicated


def set_auditor(server: Server, *words: str) -> None:
    assert server.call("ACL", "SETUSER", "auditor", "reset", "on", "nopass", *words) == b"OK"


async def test_restart_keeps_rights_equal_and_changes_are_found(tmp_path: Path) -> None:
    """Check this for servers with an ACL file or a configuration file, which Redis 7.0 words differently."""
    store = Replicated("redis", tmp_path)
    in_memory, in_acl_file, in_configuration = store.nodes
    for node in store.nodes:
        node.directory.mkdir(parents=True)
    for node, option in ((in_acl_file, "aclfile"), (in_configuration, "include")):
        node.options = {**node.options, option: str(node.directory / "users")}
        (node.directory / "users").write_text("")
    try:
        store.start()
        connector = Connector(store.url)
        await apply_user(connector, "edge", acl_rules(), "secret")
        set_auditor(in_memory, "~a", "~b", "+@all", "-config", "-acl", "(%R~log +get)", "(~x +set)")
        for node in (in_acl_file, in_configuration):
            set_auditor(node, "~b", "~a", "+@all", "-acl", "-config", "(~x +set)", "(%R~log +get)")
        in_acl_file.call("ACL", "SAVE")
        lines = in_configuration.call("ACL", "LIST")
        (in_configuration.directory / "users").write_bytes(b"\n".join(lines) + b"\n")
        for node in (in_acl_file, in_configuration):
            node.kill9()
            node.restart()
        found = await check_users(connector)
        assert (found.grade, found.found) == (
            Grade.OK,
            "auditor, default, edge: the same on 3 servers",
        ), found

        in_configuration.call("ACL", "SETUSER", "edge", "resetpass", ">another")
        set_auditor(in_acl_file, "~a", "~b", "-config", "-acl", "+@all", "(%R~log +get)", "(~x +set)")
        found = await check_users(connector)
        other = "has other passwords or rights on 127.0.0.1:{} than on the other servers"
        assert (found.grade, found.found) == (
            Grade.FAIL,
            f"auditor {other.format(in_acl_file.port)}; edge {other.format(in_configuration.port)}",
        )
        in_memory.call("ACL", "SETUSER", "edge", "skip-sanitize-payload", "+@all")
        found = await check_users(connector)
        assert "edge has different passwords or rights on" in found.found
        assert all(f"127.0.0.1:{node.port}" in found.found.partition("edge")[2] for node in store.nodes)
    finally:
        store.end()
