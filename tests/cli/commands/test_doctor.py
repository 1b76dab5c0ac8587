"""Test `penstock doctor` and `penstock store init` on stores with problems."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.store.model.keys import RegistryKeys
from services.store.redis.library import LIBRARY
from tests.cli.shell import Shell
from tests.servers import Server, eventually, free_port


@pytest.fixture
def empty(alone: Shell, server: Server) -> Shell:
    """Return a shell whose store is not set up."""
    alone.environment["REDIS_URL"] = server.url
    return alone


@pytest.fixture
def ready(empty: Shell) -> Shell:
    """Return a shell whose store is set up."""
    empty.run("store", "init")
    return empty


def findings(shell: Shell, *options: str, code: int) -> dict[str, dict[str, Any]]:
    document = shell.run("doctor", "--json", *options, code=code).object
    assert document["ok"] is (code == 0)
    return {finding["subject"]: finding for finding in document["findings"]}


def test_single_address_with_replicas_is_a_warning(ready: Shell, server: Server, tmp_path: Path) -> None:
    """Check that one address with replicas is a warning: a replica that takes over may lack acknowledged messages."""
    assert findings(ready, code=0)["durability"]["grade"] == "ok"
    replica = Server("valkey", tmp_path / "replica").start()
    try:
        replica.call("REPLICAOF", "127.0.0.1", str(server.port))
        eventually(lambda: server.info("replication")["connected_slaves"] == "1")
        ready.run("store", "init")
        found = findings(ready, code=0)["durability"]
    finally:
        replica.end()
    assert found["grade"] == "warn"
    assert found["found"].endswith("one address, 1 replica")
    assert "replicated:<n>" in found["advice"]


def test_store_without_setup(empty: Shell) -> None:
    found = findings(empty, code=1)
    assert found["functions"]["grade"] == found["dataset"]["grade"] == "fail"
    assert "penstock store init" in found["functions"]["advice"]
    assert empty.fails("queue", "create", "q", code=3).startswith("not_initialised: ")


def test_init_reports_levels_and_can_be_repeated(empty: Shell) -> None:
    for _ in range(2):
        assert empty.run("store", "init", "--json").object["levels"] == ["memory", "fsync"]
    assert empty.run("store", "init").text.startswith("valkey 9.1")
    findings(empty, code=0)


def test_queue_with_unsupported_ack_level(ready: Shell, server: Server) -> None:
    ready.run("queue", "create", "strict", "--ack-level", "fsync")
    with server.configured(appendfsync="everysec"):
        found = findings(ready, code=1)
        assert found["durability"]["grade"] == "warn"
        assert "strict (fsync)" in found["queues"]["found"]
        assert "appendfsync always" in found["queues"]["advice"]
        assert found["promises"]["grade"] == "fail"  # edges still rely on it
        ready.run("store", "init")
        assert findings(ready, code=1)["promises"]["grade"] == "ok"
        assert ready.fails("queue", "create", "q", "--ack-level", "fsync", code=1).startswith(
            "ack_level_refused"
        )
        document = ready.run("queue", "create", "q", "--json").object  # no preference: the existing one
        assert document["ackLevel"] == "memory"


def test_evicting_store_fails(ready: Shell, server: Server) -> None:
    with server.configured(maxmemory_policy="allkeys-lru"):
        assert findings(ready, code=1)["eviction"]["grade"] == "fail"
        ready.run("queue", "create", "q")
        assert ready.fails("put", "q", "x", code=1).startswith("store_evicts: ")


def test_store_without_memory_limit_fails_for_production(ready: Shell, server: Server) -> None:
    with server.configured(maxmemory="0"):
        assert findings(ready, code=0)["memory"]["grade"] == "warn"
        assert findings(ready, "--production", code=1)["memory"]["grade"] == "fail"


def test_nearly_full_store(ready: Shell, server: Server) -> None:
    used = int(server.info("memory")["used_memory"])
    with server.configured(maxmemory=str(int(used * 1.5))):
        assert findings(ready, code=0)["memory used"]["grade"] == "warn"
    with server.configured(maxmemory=str(int(used * 1.2))):
        assert findings(ready, code=1)["memory used"]["grade"] == "fail"


def test_functions_of_another_version(ready: Shell, server: Server) -> None:
    other = f"#!lua name={LIBRARY}\nserver.register_function('ps1_stats', function() return 1 end)"
    server.call("FUNCTION", "LOAD", "REPLACE", other)
    assert "another version" in findings(ready, code=1)["functions"]["found"]
    ready.run("store", "init")
    findings(ready, code=0)


def test_lost_domain(ready: Shell, server: Server) -> None:
    ready.run("queue", "create", "q", "--domain", "second")
    ready.run("put", "q", "gone soon")
    server.call("DEL", "ps:{second}:epoch", *server.call("KEYS", "ps:{second}:*"))
    assert findings(ready, code=1)["domain second"]["grade"] == "fail"
    assert ready.fails("store", "init", code=1).startswith(
        "dataset_lost: domain 'second' was set up and is empty now"
    )
    ready.run("store", "init", "--accept-loss")
    findings(ready, code=0)
    ready.run("put", "q", "new")
    assert ready.run("get", "q").out == b"new"


def test_unreadable_queue_does_not_hide_others(ready: Shell, server: Server) -> None:
    for name in ("newer", "q"):
        ready.run("queue", "create", name)
    server.call("HSET", "ps:{registry}:queues", "newer", "{")
    found = findings(ready, code=1)["queues"]
    assert found["found"].startswith("1 of 2 cannot be read: the document of queue 'newer'")
    listed = ready.run("queue", "list", "--json").objects
    assert [(one["name"], "unreadable" in one) for one in listed] == [("newer", True), ("q", False)]
    assert ready.run("queue", "list").text.splitlines()[-1].split()[0] == "q"


def test_a_queue_of_a_newer_version_is_shown_and_can_be_deleted(ready: Shell, server: Server) -> None:
    for name in ("newer", "q"):
        ready.run("queue", "create", name)
    kept = json.loads(server.call("HGET", RegistryKeys().queues, "newer"))
    server.call("HSET", RegistryKeys().queues, "newer", json.dumps({**kept, "spec": '{"colour": 1}'}))
    (shown,) = ready.run("queue", "show", "newer", "--json").objects
    assert (shown["name"], shown["stats"]["ready"]) == ("newer", 0)
    assert "'newer'" in shown["unreadable"]
    ready.run("queue", "delete", "newer", "--yes")
    assert [one["name"] for one in ready.run("queue", "list", "--json").objects] == ["q"]


def test_damaged_queue_is_skipped_by_list(ready: Shell, server: Server) -> None:
    for name in ("good", "spoilt"):
        ready.run("queue", "create", name)
    qid = json.loads(server.call("HGET", RegistryKeys().queues, "spoilt"))["qid"]
    (key,) = [key for key in server.call("KEYS", f"*{qid}*") if server.call("TYPE", key) == b"hash"]
    server.call("HSET", key, "added", "many")
    listed = ready.run("queue", "list", "--json").objects
    assert [(one["name"], "unreadable" in one) for one in listed] == [("spoilt", True), ("good", False)]


def test_empty_store_looks_new(ready: Shell, server: Server) -> None:
    """Check that an empty store looks new, as docs/operations.md warns: the loss of its data leaves no trace."""
    ready.run("queue", "create", "q")
    before = server.call("GET", "ps:{registry}:epoch")
    server.clear()
    assert ready.fails("queue", "list", code=3).startswith("not_initialised: ")
    ready.run("store", "init")
    assert server.call("GET", "ps:{registry}:epoch") != before  # so edges that knew the old data notice
    assert ready.run("queue", "list", "--json").out == b""


def test_silent_session(ready: Shell, server: Server) -> None:
    server.call("ZADD", "ps:{main}:ses", 1, "tmq-gone")
    found = findings(ready, code=0)["domain main sessions"]
    assert (found["grade"], found["found"]) == ("warn", "0 alive, 1 silent")


HIDDEN = {"grade": "warn", "found": "not permitted to check", "advice": "needs an administrator's rights"}


@pytest.fixture
def as_edge(ready: Shell, server: Server) -> Iterator[Shell]:
    """Yield a shell with the user that `store rights` creates, on a store that is set up."""
    ready.run("queue", "create", "q")
    rules = ready.run("store", "rights", "--json").object["rules"]
    server.call("ACL", "SETUSER", "edge", *rules, ">secret")
    ready.environment["REDIS_URL"] = server.url.replace("://", "://edge:secret@", 1)
    yield ready
    server.call("ACL", "DELUSER", "edge")


def test_edge_user_gets_the_checks_it_may_run(as_edge: Shell) -> None:
    found = findings(as_edge, code=0)
    concealed = {subject for subject, one in found.items() if one["grade"] != "ok"}
    assert concealed == {"durability", "memory", "eviction", "ack levels", "functions"}
    for subject in concealed:
        assert found[subject] == {"subject": subject, **HIDDEN}
    assert found["promises"]["found"] == "edges rely on memory, fsync"
    assert found["queues"]["found"] == "1, and all ack levels can be guaranteed"
    assert {"server", "disk", "memory used", "clock", "dataset", "domain main"} < found.keys()


def test_edge_user_gets_failures(as_edge: Shell, server: Server) -> None:
    server.call("DEL", "ps:{main}:epoch", *server.call("KEYS", "ps:{main}:*"))
    assert findings(as_edge, code=1)["domain main"]["grade"] == "fail"


def test_unreachable_store(alone: Shell, tmp_path: Path) -> None:
    for url in (f"redis://127.0.0.1:{free_port()}", f"unix://{tmp_path}/nothing.sock"):
        for command in (["doctor"], ["queue", "list"], ["put", "q", "x"], ["store", "init"]):
            assert alone.fails(*command, "--store", url, code=3).startswith("store_unavailable: ")
    assert alone.fails("doctor", "--store", "http://x", code=2).startswith("bad_settings: store.url: ")


def test_no_store_configured(alone: Shell) -> None:
    error = alone.fails("queue", "list", code=3)
    assert error.startswith("no_store: no `penstock up` runs on penstock-data")
    assert "--store or REDIS_URL" in error
    assert "no_store" in alone.fails("store", "init", code=3)
