"""Peer documents and the catalogue's peers (docs/store.md, rqp_mca.md 1.2, 3.3, rqp_cast.md 1.1, 2.2, 5.4)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from services.store.catalogue.registry import EVERYTHING
from services.store.model.errors import NotInitialised, StoreFault
from services.store.model.peer import (
    Peer,
    PeerDocument,
    PeerSpec,
    Profile,
    Unreadable,
    split_address,
    to_peer_document,
)
from services.store.model.rqp_binding import DuplicateResult, Protocol
from tests.one_machine import is_of_one_machine
from tests.servers import Server
from tests.store.desk import Desk, until

MCA = PeerSpec(protocol="rqp-mca", addresses=["10.0.0.7"], window=100)
CAST = PeerSpec(protocol="rqp-cast", addresses=["10.0.0.7:11312", "mq.example.org"], omit_address=True)


hosts = st.one_of(
    st.ip_addresses(v=4).filter(is_of_one_machine).map(str),
    st.ip_addresses(v=6).filter(is_of_one_machine).map("[{}]".format),
    st.sampled_from(["localhost", "a_b.c"]),
)
addresses = st.builds(
    lambda host, port: f"{host}:{port}" if port else host, hosts, st.one_of(st.none(), st.integers(1, 65535))
)
mca = st.fixed_dictionaries(
    {"protocol": st.just("rqp-mca"), "addresses": st.lists(addresses, min_size=1, max_size=4)},
    optional={"profile": st.sampled_from(["packed", "octet", "word"]), "window": st.integers(1, 1000)},
)
cast = st.fixed_dictionaries(
    {"protocol": st.just("rqp-cast"), "addresses": st.just(["10.0.0.7"])},
    optional={
        "omitAddress": st.booleans(),
        "trustAddress": st.booleans(),
        "duplicateResult": st.sampled_from(["failure", "success"]),
    },
)


def read(spec: dict[str, Any], name: Any = "shop") -> PeerDocument:
    return PeerDocument.model_validate({"kind": "Peer", "metadata": {"name": name}, "spec": spec})


others = st.fixed_dictionaries(
    {
        "protocol": st.sampled_from(["ring", "text"]),
        "addresses": st.lists(addresses, min_size=1, max_size=4),
    }
)


@given(st.one_of(mca, cast, others))
def test_document_round_trips(spec: dict[str, Any]) -> None:
    document = read(spec)
    again = PeerDocument.model_validate(to_peer_document(Peer(document.name, document.spec)))
    assert again.spec == document.spec
    kept = document.spec.model_dump_json(by_alias=True, exclude_defaults=True)
    assert PeerSpec.model_validate_json(kept) == document.spec


def test_defaults() -> None:
    spec = read({"protocol": "rqp-mca", "addresses": ["a"]}).spec
    assert (spec.protocol, spec.profile, spec.window) == (Protocol.MCA, Profile.PACKED, 1)
    spec = read({"protocol": "rqp-cast", "addresses": ["a"]}).spec
    assert (spec.omit_address, spec.trust_address) == (False, False)
    assert spec.duplicate_result is DuplicateResult.FAILURE


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("10.0.0.7", ("10.0.0.7", None)),
        ("mq.example.org:11311", ("mq.example.org", 11311)),
        ("[::1]", ("::1", None)),
        ("255.255.255.255:1", ("255.255.255.255", 1)),
        ("_a-1.b.", ("_a-1.b.", None)),
        ("1.2.3.4.example.org", ("1.2.3.4.example.org", None)),
        ("x" * 63, ("x" * 63, None)),
        ("[2001:DB8::1]:65535", ("2001:db8::1", 65535)),
    ],
)
def test_addresses(text: str, parts: tuple[str, int | None]) -> None:
    assert split_address(text) == parts


@pytest.mark.parametrize(
    "address",
    [
        "",
        ":11311",
        "a:",
        "a:0",
        "a:65536",
        "a:x",
        "a b",
        "::1",
        "[::1",
        "[]",
        "[g::]:1",
        "a:1:2",
        "a\n",
        "ä",
        "a:07",
        "x" * 261,
        "x" * 64,
        "-",
        "...",
        ".a",
        "a..b",
        "a-.b",
        "a.-b:7",
        "999.999.1.1",
        "10.0.0.256:11311",
        "010.0.0.7",
        "10.0.0.7.",
    ],
)
def test_invalid_address_is_refused(address: str) -> None:
    with pytest.raises(ValidationError, match=r"addresses\.0"):
        read({"protocol": "rqp-mca", "addresses": [address]})


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({}, "protocol"),
        ({"protocol": "tmq", "addresses": ["a"]}, "'rqp-mca', 'rqp-cast', 'ring' or 'text'"),
        ({"protocol": "rqp-mca"}, "addresses"),
        ({"protocol": "rqp-mca", "addresses": []}, "write a list of addresses"),
        ({"protocol": "rqp-mca", "addresses": "10.0.0.7"}, "write a list of addresses"),
        ({"protocol": "rqp-mca", "addresses": ["a"], "profile": "nibble"}, "'packed', 'octet' or 'word'"),
        ({"protocol": "rqp-mca", "addresses": ["a"], "window": 0}, "greater than or equal to 1"),
        ({"protocol": "rqp-mca", "addresses": ["a"], "window": True}, "write a whole number"),
        (
            {"protocol": "rqp-mca", "addresses": ["a"], "omitAddress": False},
            "omitAddress applies to protocol rqp-cast only: remove it",
        ),
        (
            {"protocol": "rqp-cast", "addresses": ["a"], "window": 1},
            "window applies to protocol rqp-mca only",
        ),
        ({"protocol": "ring", "addresses": ["a"], "window": 1}, "window applies to protocol rqp-mca only"),
        (
            {"protocol": "text", "addresses": ["a"], "decline": True},
            "decline applies to protocol rqp-cast only",
        ),
        ({"protocol": "ring", "addresses": []}, "write a list of addresses"),
        ({"protocol": "text", "addresses": ["a:0"]}, "write an address as host or host:port"),
        ({"protocol": "rqp-cast", "addresses": ["[::1]"]}, "IPv4 addresses only"),
        (
            {"protocol": "rqp-cast", "addresses": ["255.255.255.255"]},
            "broadcast, multicast or wildcard address: 255.",
        ),
        ({"protocol": "rqp-cast", "addresses": ["127.255.255.255"]}, "wildcard address: 127."),
        ({"protocol": "rqp-cast", "addresses": ["0.0.0.0:1"]}, "wildcard address: 0."),
        ({"protocol": "text", "addresses": ["[0::0]"]}, "wildcard address: [0"),
        (
            {"protocol": "rqp-mca", "addresses": ["224.0.0.1:11311"]},
            "broadcast, multicast or wildcard address: 224.",
        ),
        ({"protocol": "rqp-mca", "addresses": ["a"], "tls": True}, "Extra inputs are not permitted"),
    ],
)
def test_invalid_peer_is_refused(spec: dict[str, Any], text: str) -> None:
    with pytest.raises(ValidationError) as caught:
        read(spec)
    assert text in str(caught.value)


@pytest.mark.parametrize("name", ["", "a b", "a,b", "x" * 256, "\0", 5])
def test_invalid_peer_name_is_refused(name: object) -> None:
    with pytest.raises(ValidationError, match=r"metadata\.name"):
        read({"protocol": "rqp-mca", "addresses": ["a"]}, name)


async def test_peers_are_added_changed_and_removed(desk: Desk) -> None:
    peers = desk.store.peers
    assert await peers.all() == []
    assert await peers.apply("shop", MCA, "cli")
    assert await peers.apply("łódź", CAST, "cli")
    assert not await peers.apply("shop", CAST, "cli")
    async with desk.another() as other:
        assert await other.store.peers.all() == [
            Peer("shop", CAST, "cli"),
            Peer("łódź", CAST, "cli"),
        ]
        assert await other.store.peers.find("łódź") == Peer("łódź", CAST, "cli")
    assert await peers.delete("shop")
    assert not await peers.delete("shop")
    assert await peers.find("shop") is None
    assert await peers.all() == [Peer("łódź", CAST, "cli")]


async def test_last_declaration_determines_the_owner(desk: Desk) -> None:
    """Check that the last declaration sets the owner (docs/store.md, Numbers and transmission queues)."""
    peers = desk.store.peers
    assert await peers.apply("shop", MCA, "operator")
    assert await peers.find("shop") == Peer("shop", MCA, "operator")
    assert not await peers.apply("shop", MCA, "file")
    assert await peers.all() == [Peer("shop", MCA, "file")]


async def test_document_of_an_older_version_has_no_owner(desk: Desk) -> None:
    """Check that a document of an older version, which stored the spec alone, has no owner."""
    kept = CAST.model_dump_json(by_alias=True, exclude_defaults=True)
    await desk.domain.link.call("HSET", desk.store.registry.keys.peers, "shop", kept)
    assert await desk.store.peers.find("shop") == Peer("shop", CAST, "")


async def test_peers_need_an_initialised_store(own_server: Server) -> None:
    edge = Desk(own_server, initialise=False)
    try:
        with pytest.raises(NotInitialised):
            await edge.store.peers.apply("shop", MCA, "cli")
    finally:
        await edge.close()


async def test_unreadable_document_does_not_affect_other_peers(desk: Desk) -> None:
    peers, keys = desk.store.peers, desk.store.registry.keys
    await peers.apply("warehouse", CAST, "cli")
    await desk.domain.link.call("HSET", keys.peers, "shop", '{"protocol":"pigeon"}', "broken", "{")
    newer = '{"owner":"operator","spec":{"protocol":"pigeon","addresses":["a"]}}'
    await desk.domain.link.call("HSET", keys.peers, "newer", newer)
    broken, newest, shop, warehouse = await peers.all()
    assert isinstance(newest, Unreadable)
    assert (newest.name, newest.owner) == ("newer", "operator")
    assert isinstance(shop, Unreadable)
    assert (
        "protocol: Input should be 'rqp-mca', 'rqp-cast', 'ring' or 'text'; addresses: Field required"
        in shop.problem
    )
    assert isinstance(broken, Unreadable)
    assert (broken.name, broken.problem[:13]) == ("broken", "Invalid JSON:")
    assert warehouse == Peer("warehouse", CAST, "cli")
    with pytest.raises(StoreFault, match="peer 'shop' in the store cannot be read: protocol"):
        await peers.find("shop")
    await peers.apply("shop", MCA, "cli")
    assert await peers.delete("broken")
    assert await peers.delete("newer")
    assert await peers.all() == [Peer("shop", MCA, "cli"), warehouse]


async def test_watchers_of_peers_and_queues_are_separate(desk: Desk) -> None:
    async with desk.another() as edge:
        edge.store.start_serving()
        peers: list[str] = []
        queues: list[str] = []
        end = edge.store.peers.watch(peers.append)
        edge.store.catalogue.watch(queues.append)
        await until(lambda: EVERYTHING in peers)
        await desk.store.peers.apply("shop", MCA, "cli")
        await desk.store.peers.delete("shop")
        await desk.queue("shop")
        await until(lambda: "shop" in queues)
        assert [name for name in peers if name != EVERYTHING] == ["shop", "shop"]
        assert [name for name in queues if name != EVERYTHING] == ["shop"]
        end()
        await desk.store.peers.apply("shop", MCA, "cli")
        await desk.queue("last")
        await until(lambda: "last" in queues)
        assert peers.count("shop") == 2
