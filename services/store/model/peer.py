"""Validate the Peer document: another system that messages go to or come from.

    apiVersion: penstock.dev/v1alpha1
    kind: Peer
    metadata: {name: warehouse}
    spec: {protocol: rqp-mca, addresses: [10.0.0.7, mq.example.org:11311], window: 100}

Fields that this version does not support are refused, never ignored.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator
from pydantic.alias_generators import to_camel

from services.store.model.document import API_VERSION, Document, refuse_bool, text_schema
from services.store.model.duration import STORED
from services.store.model.rqp_binding import DuplicateResult, PeerName, Protocol

PORT = r"[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"
LABEL = "[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
ADDRESS = rf"(?:\[[^\[\]]*\]|{LABEL}(?:\.{LABEL})*\.?)(?::(?:{PORT}))?"
FOUR_NUMBERS = r"[0-9]+(?:\.[0-9]+){3}\.?"  # host names do not end in a number
# Multicast, wildcard, and the broadcast addresses common to all machines; others depend on the interfaces.
NOT_ONE_MACHINE = (
    r"(?:(?:22[4-9]|23[0-9])(?:\.[0-9]+){3}|(?:127|255)\.255\.255\.255|0\.0\.0\.0)\.?(?::|$)"
    r"|\[(?:[fF][fF]|[0:.]+\])"
)
NO_PEER = "an address must name one machine; it cannot be a broadcast, multicast or wildcard address"
PARTS = re.compile(r"(?:\[(?P<v6>[^\]]*)\]|(?P<host>[^:]+))(?::(?P<port>[0-9]+))?")
MAX_ADDRESSES = 1000
MAX_ADDRESS = 260  # characters: the longest host name and a port
NO_ADDRESS = "write an address as host or host:port, as in 10.0.0.7:11311 or [::1]:11311"
NO_IPV4 = "four numbers must be an IPv4 address, as in 10.0.0.7"


class PeerProtocol(StrEnum):
    """The protocol of a peer. Only RQP peers can be destinations of queues (`Remote`)."""

    MCA = Protocol.MCA.value  # receiving MCAs
    CAST = Protocol.CAST.value  # machines of a group
    RING = "ring"  # nodes that get beacons (ring.md 3.4)
    TEXT = "text"  # servers on other stores, joined by links (pubsub.md 4.1)


OF_ONE_PROTOCOL = {  # fields that apply to a single protocol
    "profile": PeerProtocol.MCA,
    "window": PeerProtocol.MCA,
    "omit_address": PeerProtocol.CAST,
    "trust_address": PeerProtocol.CAST,
    "duplicate_result": PeerProtocol.CAST,
    "decline": PeerProtocol.CAST,
}


class Profile(StrEnum):
    """How an RQP/MCA peer reads a uint4 (rqp_mca.md 1.2)."""

    PACKED = "packed"  # 4 bits
    OCTET = "octet"  # 8
    WORD = "word"  # 32


def split_address(text: str) -> tuple[str, int | None]:
    """Split '10.0.0.7:11311' into host and port; no port is None, the protocol's default. Raises ValueError."""
    found = PARTS.fullmatch(text) if re.fullmatch(ADDRESS, text) and len(text) <= MAX_ADDRESS else None
    if not found:
        raise ValueError(NO_ADDRESS)
    port = int(found["port"]) if found["port"] else None
    if found["v6"] is None:
        return _check_host(found["host"]), port
    return str(ipaddress.IPv6Address(found["v6"])), port


def _check_host(name: str) -> str:
    if re.fullmatch(FOUR_NUMBERS, name):
        try:
            ipaddress.IPv4Address(name)
        except ValueError:
            raise ValueError(NO_IPV4) from None
    return name


def check_address(text: str) -> str:
    """Return an address. Raises ValueError."""
    split_address(text)
    return text


def refuse_one_address(value: object) -> object:
    """Refuse a single text, which pydantic would split into characters, and an empty list. Raises ValueError."""
    if isinstance(value, str) or value in ([], ()):
        raise ValueError("write a list of addresses, as in [10.0.0.7, 10.0.0.8:11311]")
    return value


Address = Annotated[str, AfterValidator(check_address), text_schema(ADDRESS, MAX_ADDRESS, NO_ADDRESS)]
Addresses = Annotated[tuple[Address, ...], BeforeValidator(refuse_one_address)]


def _say_protocols(schema: dict[str, Any]) -> None:
    for name, protocol in OF_ONE_PROTOCOL.items():
        schema["properties"][to_camel(name)]["onlyOf"] = protocol.value


class PeerSpec(Document):
    """The addresses of a peer, and its protocol with options."""

    model_config = ConfigDict(json_schema_extra=_say_protocols)

    protocol: PeerProtocol = Field(description="the peer's protocol, which selects the edge that sends to it")
    addresses: Addresses = Field(
        max_length=MAX_ADDRESSES,
        description="host or host:port of each machine; default ports: rqp-mca 11311, rqp-cast 11312, ring 8083 "
        "(beacons), text 7172 (links)",
        # min_length would also report a list with an invalid address as empty
        json_schema_extra={"minItems": 1},
    )
    profile: Profile = Field(Profile.PACKED, description="rqp-mca: how the peer reads a uint4")
    window: Annotated[int, BeforeValidator(refuse_bool)] = Field(
        1, ge=1, le=1000, description="rqp-mca: maximum number of unconfirmed messages"
    )
    omit_address: bool = Field(False, description="rqp-cast: omit the address in messages over TCP")
    trust_address: bool = Field(
        False,
        description="rqp-cast: identify the sender by the address in its messages, not by its connection",
    )
    duplicate_result: DuplicateResult = Field(
        DuplicateResult.FAILURE, description="rqp-cast: the answer to a message that was received before"
    )
    decline: bool = Field(True, description="rqp-cast: decline machines that answer and are not chosen")

    @model_validator(mode="after")
    def _says_nothing_of_other_protocols(self) -> Self:
        for name, protocol in OF_ONE_PROTOCOL.items():
            if name in self.model_fields_set and protocol is not self.protocol:
                alias = type(self).model_fields[name].alias
                raise ValueError(f"{alias} applies to protocol {protocol} only: remove it")
        return self

    @model_validator(mode="after")
    def _can_be_named_on_the_wire(self) -> Self:
        if self.protocol is PeerProtocol.CAST and any("[" in address for address in self.addresses):
            raise ValueError("rqp-cast supports IPv4 addresses only")  # rqp_cast.md 1.1
        return self

    @model_validator(mode="after")
    def _are_of_one_machine_each(self, info: ValidationInfo) -> Self:
        """Refuse other addresses, except in stored documents of older versions, where `KnownPeers` skips them."""
        if info.context != STORED and (others := self.not_of_one_machine()):
            raise ValueError(f"{NO_PEER}: {others[0]}")
        return self

    def not_of_one_machine(self) -> tuple[str, ...]:
        """Return the addresses that name several machines; ring beacons may go to those (ring.md 3.4)."""
        if self.protocol is PeerProtocol.RING:
            return ()
        return tuple(address for address in self.addresses if re.match(NOT_ONE_MACHINE, address))


class PeerMetadata(Document):
    """The name and labels of a peer; further metadata is ignored."""

    model_config = ConfigDict(extra="ignore")
    name: PeerName
    labels: dict[str, str] = Field(default_factory=dict)


class PeerDocument(Document):
    """A complete Peer document, as in queues.yaml."""

    api_version: Literal["penstock.dev/v1alpha1"] = Field(API_VERSION, alias="apiVersion")
    kind: Literal["Peer"] = "Peer"
    metadata: PeerMetadata
    spec: PeerSpec

    @property
    def name(self) -> str:
        """The peer's name."""
        return self.metadata.name


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer of the catalogue."""

    name: str
    spec: PeerSpec
    owner: str = ""  # 'file', 'cli' or 'operator'; '' = unknown, declared by an older version


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A peer whose document this version cannot read, as a newer one may have written it."""

    name: str
    problem: str
    owner: str = ""


def to_peer_document(peer: Peer) -> dict[str, Any]:
    """Return the document of a peer with the fields that differ from the defaults."""
    plain = peer.spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return {"apiVersion": API_VERSION, "kind": "Peer", "metadata": {"name": peer.name}, "spec": plain}
