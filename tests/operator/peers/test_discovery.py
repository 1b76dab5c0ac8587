"""Test peers from EndpointSlices, and `.rqprc` (docs/kubernetes.md, "Discovery")."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock_operator.cluster.resources import Kind, Resource
from penstock_operator.peers.discovery import discovered_peers, found_in, rqprc

from protos.rqp_cast.rqprc import parse_rqprc
from services.store.model.peer import MAX_ADDRESSES, PeerSpec
from tests.operator.peers.test_peers import endpoints


def slices(*documents: dict[str, Any]) -> list[Resource]:
    read = []
    for number, document in enumerate(documents):
        metadata = {"namespace": "shop", "uid": str(number), "resourceVersion": "1", "creationTimestamp": ""}
        document["metadata"] = {**metadata, **document["metadata"]}
        read.append(Resource.read(Kind.SLICE, document))
    return read


def test_slices_of_a_service_are_merged() -> None:
    two = slices(
        endpoints("depot", "rqp-mca", 11311, "10.0.0.2"), endpoints("depot", "rqp-mca", 11311, "10.0.0.1")
    )
    peers = discovered_peers(found_in(two), "mine")
    assert {name: peer.addresses for name, peer in peers.items()} == {
        "depot.shop.rqp-mca": ("10.0.0.1:11311", "10.0.0.2:11311")
    }


def test_service_with_several_protocols_is_several_peers() -> None:
    (both,) = slices(endpoints("depot", "rqp-mca", 11311, "10.0.0.2"))
    ports = [*both.spec["ports"], {"name": "text-link", "port": 7172}, {"name": "health", "port": 9161}]
    found = found_in([replace(both, spec={**both.spec, "ports": ports})])
    assert sorted(discovered_peers(found, "mine")) == ["depot.shop.rqp-mca", "depot.shop.text"]


def test_addresses_are_limited() -> None:
    many = slices(
        *(
            endpoints("depot", "rqp-mca", 1, *(f"10.{part}.{host >> 8}.{host & 255}" for host in range(900)))
            for part in range(2)
        )
    )
    (peer,) = discovered_peers(found_in(many), "mine").values()
    assert len(peer.addresses) == MAX_ADDRESSES


def test_unready_endpoints_are_ignored() -> None:
    assert found_in(slices(endpoints("depot", "rqp-mca", 1, "10.0.0.2", ready=False))) == []
    assert found_in(slices(endpoints("depot", "web", 80, "10.0.0.2"))) == []


def test_rqprc_can_be_parsed() -> None:
    own = found_in(slices(endpoints("own", "rqp-cast", 11312, "10.0.0.2", "fd00::1", store="mine")))
    declared = PeerSpec.model_validate(
        {"protocol": "rqp-cast", "addresses": ["10.0.0.3:999", "10.0.0.2:11312", "depot"]}
    )
    text = rqprc(own, "mine", [declared])
    assert text == "10.0.0.2:11312\n10.0.0.3:999\ndepot\n"
    assert parse_rqprc(text).bad_lines == ()
    assert rqprc([], "mine", []) == ""


def test_unsupported_address_families_are_left_out() -> None:
    """Check that RQP/cast leaves out IPv6 slices of a dual-stack Service, as it has IPv4 only (rqp_cast.md 1.2)."""
    both = slices(
        endpoints("depot", "rqp-cast", 11312, "10.0.0.2"), endpoints("depot", "rqp-cast", 11312, "fd00::1")
    )
    peers = discovered_peers(found_in(both), "mine")
    assert [peer.addresses for peer in peers.values()] == [("10.0.0.2:11312",)]
    assert discovered_peers(found_in(both[1:]), "mine") == {}
    mca = slices(endpoints("depot", "rqp-mca", 11311, "fd00::1"))
    assert [peer.addresses for peer in discovered_peers(found_in(mca), "mine").values()] == [
        ("[fd00::1]:11311",)
    ]
