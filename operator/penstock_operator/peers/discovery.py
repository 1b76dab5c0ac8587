"""Discover peers from EndpointSlices. Pure functions.

A Service with the label `penstock.dev/discover: "true"` shows by its port names which protocols its pods speak. Its
label `penstock.dev/store` names their store. Edges of this operator's own store become peers only as nodes of a ring;
those that speak RQP/cast are listed in `.rqprc` for programs in the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock_operator.cluster.resources import Resource
from services.store.model import MAX_ADDRESSES, PeerProtocol, PeerSpec

DISCOVER = "penstock.dev/discover"
STORE = "penstock.dev/store"
SERVICE = "kubernetes.io/service-name"

PORTS = {  # port name -> protocol
    "rqp-mca": PeerProtocol.MCA,
    "rqp-cast": PeerProtocol.CAST,
    "ring-beacon": PeerProtocol.RING,
    "text-link": PeerProtocol.TEXT,
}


@dataclass(frozen=True, slots=True)
class DiscoveredPort:
    """The endpoints behind one port of a Service."""

    namespace: str
    service: str
    store: str
    protocol: PeerProtocol
    addresses: tuple[str, ...]

    @property
    def name(self) -> str:
        """Return the name of the peer, one per protocol of a Service."""
        return f"{self.service}.{self.namespace}.{self.protocol}"


def namespace_of(peer: str) -> str:
    """Return the namespace of the Service for a discovered peer's name; '' for other names."""
    parts = peer.split(".")
    return parts[1] if len(parts) == 3 else ""


def found_in(slices: Iterable[Resource]) -> list[DiscoveredPort]:
    """Merge the slices of each Service; addresses are sorted, one entry per protocol."""
    addresses: dict[tuple[str, str, str, PeerProtocol], set[str]] = {}
    for each in slices:
        service = each.labels.get(SERVICE, each.key.name)
        for port in each.spec["ports"]:
            protocol = PORTS.get(port.get("name") or "")
            if protocol is not None and port.get("port"):
                place = (each.key.namespace, service, each.labels.get(STORE, ""), protocol)
                addresses.setdefault(place, set()).update(_addresses(each, port["port"]))
    return [
        DiscoveredPort(*place, tuple(sorted(endpoints)))
        for place, endpoints in sorted(addresses.items())
        if endpoints
    ]


def _addresses(each: Resource, port: int) -> Iterable[str]:
    for endpoint in each.spec["endpoints"]:
        conditions = endpoint.get("conditions") or {}
        if conditions.get("ready", True):
            for address in endpoint.get("addresses") or ():
                yield f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def discovered_peers(found: Iterable[DiscoveredPort], own_store: str) -> dict[str, PeerSpec]:
    """Return the discovered peers: edges of other stores and nodes of the own ring, up to MAX_ADDRESSES addresses."""
    peers = {}
    for each in found:
        if each.store != own_store or each.protocol is PeerProtocol.RING:
            endpoints = _for(each.protocol, each.addresses)[:MAX_ADDRESSES]
            if endpoints:
                peers[each.name] = PeerSpec(protocol=each.protocol, addresses=endpoints)
    return peers


def _for(protocol: PeerProtocol, addresses: tuple[str, ...]) -> tuple[str, ...]:
    """Return the addresses that the protocol can use: RQP/cast has IPv4 only (rqp_cast.md 1.2)."""
    if protocol is not PeerProtocol.CAST:
        return addresses
    return tuple(address for address in addresses if not address.startswith("["))


def rqprc(found: Iterable[DiscoveredPort], own_store: str, peers: Iterable[PeerSpec]) -> str:
    """Return the content of `.rqprc`: one IPv4 address per line, own edges first (rqp_cast.md 1.1)."""
    ours = (
        each.addresses for each in found if each.store == own_store and each.protocol is PeerProtocol.CAST
    )
    theirs = (peer.addresses for peer in peers if peer.protocol == PeerProtocol.CAST)
    lines = dict.fromkeys(address for group in (*ours, *theirs) for address in _for(PeerProtocol.CAST, group))
    return "".join(f"{line}\n" for line in lines)
