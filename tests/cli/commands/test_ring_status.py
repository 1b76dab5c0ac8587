"""Test `penstock ring status`: the state that nodes published, and conclusions from it (docs/cli.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from services.store import Store
from services.store.catalogue.ring_groups import Chain, chains
from services.store.catalogue.ring_nodes import KEEP_MS
from tests.cli.shell import Shell

GROUPS = (7001, 7002)  # no node of `penstock up` is in them


def link(name: str | None, since_s: float = 5.0) -> dict[str, Any]:
    return {"name": name, "address": "10.0.0.9:1234", "since_s": since_s}


def document(name: str, **value: Any) -> dict[str, Any]:
    """Return a document as a node writes it (tested in tests/ring/links/test_status.py)."""
    nothing: dict[str, Any] = {"predecessor": None, "successor": None, "last_break": None, "away": None}
    return {"name": name, "leader": "c:1", "is_leader": name == "c:1", "member_count": 2, **nothing, **value}


RING = (
    document("a:1", predecessor=link("c:1"), successor=link("b:1", 125.0)),
    document("b:1", predecessor=link(None), successor=link("c:1")),
    document(
        "c:1",
        predecessor=link("b:1"),
        successor=link("a:1"),
        last_break={"side": "outbound", "why": "no answer in time", "ago_s": 7200.0},
    ),
)


@pytest.fixture
def board(shell: Shell) -> Iterator[Shell]:
    yield shell

    async def clear(store: Store) -> None:
        for node in await store.ring_nodes.all():
            if node.group in GROUPS:
                await store.ring_nodes.remove(node.group, node.name)

    shell.with_store(clear)


def write(shell: Shell, group: int, *documents: dict[str, Any], silent_ms: int = 0) -> None:
    async def put(store: Store) -> None:
        registry = store.registry
        for one in documents:
            await store.ring_nodes.put(group, one["name"], one)
            if silent_ms:
                field = f"{group} {one['name']}"
                found = await registry.link.call("HGET", registry.keys.ring_nodes, field)
                written, _, text = found.partition(b" ")
                older = b"%d %b" % (int(written) - silent_ms, text)
                await registry.link.call("HSET", registry.keys.ring_nodes, field, older)

    shell.with_store(put)


def test_ring_is_shown_in_order(board: Shell) -> None:
    write(board, 7001, *reversed(RING))
    body = board.run("ring", "status", "--group", "7001", "--json").object
    assert (body["group"], body["is_ring"], body["leaders"]) == (7001, True, ["c:1"])
    assert body["chains"] == [{"nodes": ["a:1", "b:1", "c:1"], "is_closed": True}]
    assert [node["name"] for node in body["nodes"]] == ["a:1", "b:1", "c:1"]
    assert all(not node["is_silent"] and node["written_s"] < 30 for node in body["nodes"])
    lines = board.run("ring", "status", "--group", "7001").text.splitlines()
    assert lines[0] == "group 7001: a ring of 3, led by c:1"
    assert lines[1] == "  a:1 → b:1 → c:1 → a:1"
    assert lines[2].split()[:4] == ["node", "predecessor", "successor", "leader"]
    first, second, third = lines[4:]
    assert "b:1, 2m" in first
    assert "10.0.0.9:1234, " in second, "an original node does not send its name"
    assert "itself" in third
    assert "outbound, 2h ago: no answer in time" in third


def test_node_without_writes_is_silent(board: Shell) -> None:
    """Check that a node without writes is silent, while its neighbours still show its links."""
    write(board, 7001, *RING[:2])
    write(board, 7001, RING[2], silent_ms=60_000)
    body = board.run("ring", "status", "--group", "7001", "--json").object
    assert body["is_ring"] is None, "it is dead, or has no store"
    assert body["leaders"] == []
    assert [node["is_silent"] for node in body["nodes"]] == [False, False, True]
    assert body["chains"] == [{"nodes": ["a:1", "b:1", "c:1"], "is_closed": False}]
    lines = board.run("ring", "status", "--group", "7001").text.splitlines()
    assert lines[0] == (
        "group 7001: 3 nodes with this store, part of a ring, the rest is not visible from this store, without a leader"
    )
    assert lines[-1].rstrip().endswith("silent for 1m")


def test_each_group_is_shown(board: Shell) -> None:
    write(board, 7001, *RING)
    write(board, 7002, document("alone:1", leader="alone:1"))
    results = [one for one in board.run("ring", "status", "--json").objects if one["group"] in GROUPS]
    assert [one["group"] for one in results] == [7001, 7002]
    assert results[1]["chains"] == [{"nodes": ["alone:1"], "is_closed": False}]


def test_nodes_of_other_stores_are_shown_by_neighbours(board: Shell) -> None:
    write(board, 7001, document("a:1", predecessor=link("z:1"), successor=link("b:1")))
    body = board.run("ring", "status", "--group", "7001", "--json").object
    assert body["chains"] == [{"nodes": ["z:1", "a:1", "b:1"], "is_closed": False}]
    assert body["leaders"] == ["c:1"], "as the node reported"
    write(board, 7001, document("b:1", predecessor=link("a:1"), successor=link("z:1")))
    body = board.run("ring", "status", "--group", "7001", "--json").object
    assert body["chains"] == [{"nodes": ["a:1", "b:1", "z:1"], "is_closed": True}]
    assert body["is_ring"]
    first = board.run("ring", "status", "--group", "7001").text.splitlines()[0]
    assert first == "group 7001: a ring of 3, led by c:1"


def status(shell: Shell) -> tuple[dict[str, Any], str]:
    """Return the JSON for group 7001, and the first line of the text."""
    body = shell.run("ring", "status", "--group", "7001", "--json").object
    return body, shell.run("ring", "status", "--group", "7001").text.splitlines()[0]


def test_complete_ring_with_one_local_node(board: Shell) -> None:
    """Check that no gap is known in a ring of five systems, each with its own store."""
    write(board, 7001, document("a:1", predecessor=link("e:1"), successor=link("b:1")))
    reported, first = status(board)
    assert reported["is_ring"] is None
    assert reported["chains"] == [{"nodes": ["e:1", "a:1", "b:1"], "is_closed": False}]
    assert first == (
        "group 7001: 1 node with this store, part of a ring, the rest is not visible from this store, led by c:1"
    )


@pytest.mark.parametrize(
    "links", [{}, {"predecessor": link("b:1")}, {"successor": link("b:1")}], ids=["none", "behind", "before"]
)
def test_open_ring(board: Shell, links: dict[str, Any]) -> None:
    """Check that an open ring has no leader (ring.md 4.4), also if it had one before (4.1)."""
    write(board, 7001, document("a:1", leader="z:1", is_led=False, **links))
    reported, first = status(board)
    assert reported["is_ring"] is False
    assert reported["leaders"] == []
    assert first == "group 7001: 1 node with this store, no ring, without a leader"
    assert "none, was z:1" in board.run("ring", "status", "--group", "7001").text


def test_distant_node_may_still_know_a_leader(board: Shell) -> None:
    """Check that a leader known to a distant node only is not reported: nodes nearby know better (4.4)."""
    first = document("a:1", leader="z:1", is_led=False, successor=link("b:1"))
    write(board, 7001, first, document("b:1", leader="z:1", predecessor=link("a:1"), successor=link("x:1")))
    reported, _ = status(board)
    assert (reported["is_ring"], reported["leaders"]) == (False, [])
    write(board, 7001, document("e:1", leader="y:1", predecessor=link("y:1"), successor=link("y:1")))
    reported, line = status(board)
    assert (reported["is_ring"], reported["leaders"]) == (False, ["y:1"])
    assert line == "group 7001: 3 nodes with this store, several rings, led by y:1"


def test_leader_not_heard_any_more(board: Shell) -> None:
    """Check that a leader is not reported if its node does not hear it any more (4.6)."""
    links = {"predecessor": link("y:1"), "successor": link("x:1")}
    write(board, 7001, document("a:1", leader="z:1", is_led=False, **links))
    reported, _ = status(board)
    assert (reported["is_ring"], reported["leaders"]) == (None, [])


def test_absent_node_does_not_open_the_ring(board: Shell) -> None:
    """Check that an absent node does not open the ring (4.7)."""
    away = document("d:1", leader="c:1", is_led=False, away="the store refuses")
    write(board, 7001, away)
    assert status(board)[0]["is_ring"] is False
    write(board, 7001, document("a:1", predecessor=link("c:1"), successor=link("b:1")))
    reported, _ = status(board)
    assert (reported["is_ring"], reported["leaders"]) == (None, ["c:1"])
    assert board.run("ring", "status", "--group", "7001").text.endswith(
        "d:1 is not taking part: the store refuses\n"
    )
    write(board, 7001, *RING)
    reported, first = status(board)
    assert (reported["is_ring"], reported["leaders"]) == (False, ["c:1"])
    assert first == "group 7001: 4 nodes with this store, several rings, led by c:1"


def test_all_nodes_silent(board: Shell) -> None:
    write(board, 7001, *RING, silent_ms=60_000)
    reported, first = status(board)
    assert (reported["is_ring"], reported["leaders"]) == (None, [])
    assert first == "group 7001: 3 nodes with this store, all silent, without a leader"


def test_foreign_names_are_escaped(board: Shell) -> None:
    write(board, 7001, document("a:1", leader="\udcff\x1b[2J", successor=link("b\x1b:1")))
    text = board.run("ring", "status", "--group", "7001").text
    assert "\x1b" not in text
    assert r"b\x1b:1" in text


def test_no_nodes(board: Shell) -> None:
    output = board.fails("ring", "status", "--group", "7001", code=4)
    assert output.startswith("not_found: no node of group 7001 uses this store")
    board.fails("ring", "status", "--group", "0", code=2)
    write(board, 7001, RING[0], silent_ms=KEEP_MS // 2)
    assert board.run("ring", "status", "--group", "7001", "--json").object["nodes"][0]["is_silent"]


@pytest.mark.parametrize(
    ("following", "found"),
    [
        ({}, []),
        ({"a": "a"}, [Chain(("a",), True)]),
        ({"a": None, "b": None}, [Chain(("a",), False), Chain(("b",), False)]),
        ({"c": "a", "a": "b", "b": None}, [Chain(("c", "a", "b"), False)]),
        ({"a": "b", "b": "a", "c": "d", "d": "c"}, [Chain(("a", "b"), True), Chain(("c", "d"), True)]),
        ({"a": "x"}, [Chain(("a", "x"), False)]),
        ({"z": "a", "a": "b", "b": "a"}, [Chain(("z", "a", "b"), False)]),
    ],
)
def test_chains(following: dict[str, str | None], found: list[Chain]) -> None:
    """Check chains of nodes; two predecessors of one node mean that one of them has not noticed yet."""
    assert list(chains(following)) == found
