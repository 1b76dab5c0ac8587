"""Test `penstock peer`: apply, list, show, delete; and peers in queues.yaml (docs/cli.md)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from services.store import Store
from services.store.model.peer import PeerSpec
from tests.cli.shell import Shell

SHOP = {"protocol": "rqp-mca", "addresses": ["10.0.0.7", "shop.example.org:11311"], "window": 100}
DOCUMENTS = """
kind: Peer
metadata: {name: shop}
spec: {protocol: rqp-mca, addresses: [10.0.0.7, "shop.example.org:11311"], window: 100}
---
kind: Peer
metadata: {name: warehouse}
spec: {protocol: rqp-cast, addresses: [10.0.0.8], omitAddress: true}
"""
QUEUE = "---\nmetadata: {name: to-shop}\nspec: {remote: {protocol: rqp-mca, queueId: 70, peers: [shop]}}\n"


@pytest.fixture
def peers(shell: Shell) -> Iterator[None]:
    shell.run("peer", "apply", "-f", "-", stdin=DOCUMENTS.encode())
    yield
    for one in shell.run("peer", "list", "--json").objects:
        shell.run("peer", "delete", one["name"])


def test_apply_is_idempotent(shell: Shell, peers: None) -> None:
    again = shell.run("peer", "apply", "-f", "-", stdin=DOCUMENTS.replace("100", "50").encode())
    assert again.text == "changed: peer shop\nunchanged: peer warehouse\n"
    assert shell.run("peer", "show", "shop", "--json").object["spec"]["window"] == 50


@pytest.mark.usefixtures("peers")
def test_list_shows_all_peers(shell: Shell) -> None:
    document = shell.run("peer", "list", "--json").objects
    assert [one["name"] for one in document] == ["shop", "warehouse"]
    assert [document[0]["spec"], document[0]["owner"]] == [SHOP, "file"]
    table = shell.run("peer", "list").text.splitlines()
    assert table[0].split() == ["peer", "protocol", "owner", "addresses"]
    assert table[2].split() == ["shop", "rqp-mca", "file", "10.0.0.7,", "shop.example.org:11311"]


async def declare_as_operator(store: Store) -> None:
    await store.peers.apply("shop", PeerSpec.model_validate(SHOP), "operator")


@pytest.mark.usefixtures("peers")
def test_apply_takes_ownership(shell: Shell) -> None:
    shell.with_store(declare_as_operator)
    assert shell.run("peer", "show", "shop", "--json").object["owner"] == "operator"
    again = shell.run("peer", "apply", "-f", "-", stdin=DOCUMENTS.encode())
    assert again.text == "changed: peer shop\nunchanged: peer warehouse\n"
    assert shell.run("peer", "show", "shop", "--json").object["owner"] == "file"


def test_peers_of_rings_and_of_the_text_service(shell: Shell) -> None:
    """Check peers of rings and of the text service (docs/cli.md, peer)."""
    text = (
        "{kind: Peer, metadata: {name: depots}, spec: {protocol: ring, addresses: [10.0.0.9, '10.0.0.10:8083']}}\n---\n"
        "{kind: Peer, metadata: {name: east}, spec: {protocol: text, addresses: ['text.example.org:7172']}}\n"
    )
    applied = shell.run("peer", "apply", "-f", "-", stdin=text.encode())
    assert applied.text == "created: peer depots\ncreated: peer east\n"
    document = shell.run("peer", "list", "--json").objects
    assert [(one["name"], one["spec"]["protocol"]) for one in document] == [
        ("depots", "ring"),
        ("east", "text"),
    ]
    shell.run("peer", "delete", "depots", "east")


@pytest.mark.usefixtures("peers")
def test_unreadable_peer_is_listed_and_can_be_replaced(shell: Shell) -> None:
    async def break_it(store: Store) -> None:
        keys = store.registry.keys
        await store.registry.link.call("HSET", keys.peers, "shop", '{"protocol":"pigeon","addresses":["a"]}')

    shell.with_store(break_it)
    document = shell.run("peer", "list", "--json").objects
    assert [one["name"] for one in document] == ["shop", "warehouse"]
    assert document[0]["unreadable"].startswith("protocol: ")
    table = shell.run("peer", "list").text.splitlines()
    assert table[2].split()[:3] == ["shop", "unreadable", "protocol:"]
    assert shell.fails("peer", "show", "shop", code=1).startswith("store_fault: the document of peer 'shop'")
    again = shell.run("peer", "apply", "-f", "-", stdin=DOCUMENTS.encode())
    assert again.text == "changed: peer shop\nunchanged: peer warehouse\n"
    assert shell.run("peer", "show", "shop", "--json").object["spec"] == SHOP


@pytest.mark.usefixtures("peers")
def test_show_output_can_be_applied(shell: Shell) -> None:
    text = shell.run("peer", "show", "shop").text
    assert yaml.safe_load(text)["spec"] == SHOP
    assert shell.run("peer", "apply", "-f", "-", stdin=text.encode()).text == "unchanged: peer shop\n"


def test_one_file_has_peers_and_queues(shell: Shell, peers: None) -> None:
    dry = shell.run("queue", "apply", "-f", "-", "--dry-run", "--json", stdin=(DOCUMENTS + QUEUE).encode())
    assert [(one["kind"], one["name"], one["change"]) for one in dry.objects] == [
        ("Peer", "shop", "unchanged"),
        ("Peer", "warehouse", "unchanged"),
        ("Queue", "to-shop", "created"),
    ]
    shell.fails("queue", "show", "to-shop", code=4)


def test_peer_names_are_unique_among_peers(shell: Shell) -> None:
    text = DOCUMENTS + "---\nmetadata: {name: shop}\n" + "---\n" + DOCUMENTS
    error = shell.run("peer", "apply", "-f", "-", code=2, stdin=text.encode()).err.splitlines()
    assert [line.partition("): ")[2].partition(" is already declared")[0] for line in error] == [
        "the peer 'shop'",
        "the peer 'warehouse'",
    ]


@pytest.mark.parametrize(
    ("spec", "output"),
    [
        ("{protocol: rqp-mca, addresses: 10.0.0.7}", "spec.addresses: write a list of addresses"),
        (
            "{protocol: rqp-mca, addresses: ['a:b']}",
            "spec.addresses.0: write an address as host or host:port",
        ),
        ("{protocol: rqp-mca}", "spec.addresses: missing"),
        (
            "{protocol: rqp-mca, addresses: [a], tls: true}",
            "spec.tls: unknown; allowed: protocol, addresses, ",
        ),
        ("{protocol: rqp-cast, addresses: [a], window: 5}", "spec: window applies to protocol rqp-mca only"),
    ],
)
def test_invalid_documents_are_refused(shell: Shell, spec: str, output: str) -> None:
    text = f"kind: Peer\nmetadata: {{name: bad}}\nspec: {spec}\n"
    error = shell.fails("peer", "apply", "-f", "-", code=2, stdin=text.encode())
    assert error.startswith("bad_document: -: document 1 (bad): ")
    assert output in error
    shell.fails("peer", "show", "bad", code=4)
