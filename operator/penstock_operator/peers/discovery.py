"""Who can be reached where: Peer resources, and what EndpointSlices tell of edges. Pure.

A Service with the label `penstock.dev/discover: "true"` tells by the names of its ports which protocols its pods speak.
Its label `penstock.dev/store` says whose they are: those of our own store are no peers, but nodes of a ring that
have to find each other, and machines that programs in the cluster may ask.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock_operator.cluster.resources import Resource
from services.store.model import MAX_ADDRESSES, PeerProtocol, PeerSpec

DISCOVER = "penstock.dev/discover"
STORE = "penstock.dev/store"
SERVICE = "kubernetes.io/service-name"

PORTS = {  # names of ports, and what is spoken there
    "rqp-mca": PeerProtocol.MCA,
    "rqp-cast": PeerProtocol.CAST,
    "ring-beacon": PeerProtocol.RING,
    "text-link": PeerProtocol.TEXT,
}


@dataclass(frozen=True, slots=True)
class Found:
    """What one port of one Service leads to."""

    namespace: str
    service: str
    store: str
    protocol: PeerProtocol
    addresses: tuple[str, ...]

    @property
    def name(self) -> str:
        """As a peer's name. A Service has several of them if it speaks several protocols."""
        return f"{self.service}.{self.namespace}.{self.protocol}"


def namespace_of(peer: str) -> str:
    """That of the Service for which a peer was named so; '' if it was not."""
    parts = peer.split(".")
    return parts[1] if len(parts) == 3 else ""


def found_in(slices: Iterable[Resource]) -> list[Found]:
    """A Service may have many slices; the addresses of each protocol are together, in order."""
    addresses: dict[tuple[str, str, str, PeerProtocol], set[str]] = {}
    for each in slices:
        service = each.labels.get(SERVICE, each.key.name)
        for port in each.spec["ports"]:
            protocol = PORTS.get(port.get("name") or "")
            if protocol is not None and port.get("port"):
                place = (each.key.namespace, service, each.labels.get(STORE, ""), protocol)
                addresses.setdefault(place, set()).update(_addresses(each, port["port"]))
    return [Found(*place, tuple(sorted(there))) for place, there in sorted(addresses.items()) if there]


def _addresses(each: Resource, port: int) -> Iterable[str]:
    for endpoint in each.spec["endpoints"]:
        conditions = endpoint.get("conditions") or {}
        if conditions.get("ready", True):
            for address in endpoint.get("addresses") or ():
                yield f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def discovered_peers(found: Iterable[Found], own_store: str) -> dict[str, PeerSpec]:
    """Edges of other stores, and the nodes of our own ring; as many addresses as a peer may have, of those it can."""
    peers = {}
    for each in found:
        if each.store != own_store or each.protocol is PeerProtocol.RING:
            there = _for(each.protocol, each.addresses)[:MAX_ADDRESSES]
            if there:
                peers[each.name] = PeerSpec(protocol=each.protocol, addresses=there)
    return peers


def _for(protocol: PeerProtocol, addresses: tuple[str, ...]) -> tuple[str, ...]:
    """RQP/cast has room for IPv4 addresses only (rqp_cast.md 1.2)."""
    if protocol is not PeerProtocol.CAST:
        return addresses
    return tuple(address for address in addresses if not address.startswith("["))


def rqprc(found: Iterable[Found], own_store: str, peers: Iterable[PeerSpec]) -> str:
    """The file `.rqprc` for programs in the cluster: our own machines first, then those that were declared.

    A line each, without doubles (rqp_cast.md 1.1). IPv6 has no place there.
    """
    ours = (
        each.addresses for each in found if each.store == own_store and each.protocol is PeerProtocol.CAST
    )
    theirs = (peer.addresses for peer in peers if peer.protocol == PeerProtocol.CAST)
    lines = dict.fromkeys(address for group in (*ours, *theirs) for address in _for(PeerProtocol.CAST, group))
    return "".join(f"{line}\n" for line in lines)
