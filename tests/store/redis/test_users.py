"""`penstock doctor` compares what users may do on each server of a store, however each server writes it."""

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


async def test_a_restart_makes_no_difference_and_other_rights_do(tmp_path: Path) -> None:
    """One server keeps users in its ACL file, one in its configuration file; Redis 7.0 reads both in other words."""
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
        told = (await check_users(connector)).found
        assert "edge has not the same passwords and rights on" in told
        assert all(f"127.0.0.1:{node.port}" in told.partition("edge")[2] for node in store.nodes)
    finally:
        store.end()
