"""CEL rules of the CRDs: constraints between fields, and fields that cannot change.

Messages are shared with the models where possible, so that `kubectl apply` and `penstock up` report the same.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from pydantic.alias_generators import to_camel

from services.store.model import (
    CAST_HAS_NO_CERTIFICATES,
    CATALOGUES_DOMAIN,
    CHOOSE_ANOTHER,
    FOUR_NUMBERS,
    HOST_BITS,
    LOG_DOMAIN,
    MAX_NAME_BYTES,
    MCA_LARGEST_BODY,
    NO_IPV4,
    NO_NETWORK,
    NO_PEER,
    NO_TIME,
    NOT_ONE_MACHINE,
    OF_ONE_PROTOCOL,
    PREFIX,
    REGISTRY_DOMAIN,
    RING_EDGE,
    RING_EDGE_EXCLUDED,
    RING_HAS_NO_CLIENT_IDENTITY,
    TEXT_EDGE,
    TEXT_EDGE_EXCLUDED,
    TEXT_HAS_NO_CLIENT_IDENTITY,
    TOO_LARGE_FOR_MCA,
    PeerProtocol,
    Protocol,
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule in which `self` is the field at `path`, from the document's root; '' is the document itself."""

    path: str
    rule: str
    message: str


def _name(whole: str) -> str:
    return f"(has({whole}.spec.queueName) ? {whole}.spec.queueName : {whole}.metadata.name)"


_NUMBERS = ("rqpMca.queueId", "rqpCast.key", "ring.inbox", "ring.outbox")
_HAS_NUMBERS = " || ".join(f"has(self.bindings.{number})" for number in _NUMBERS)
_NUMBER_THERE = {Protocol.MCA: "queueId", Protocol.CAST: "key"}  # field of `remote` by protocol

_NO_TEXT = '(size(self.bindings.text.subscribe) == 0 && self.bindings.text.publish == "")'
_WHOEVER = "(size(self.access.peers) == 0 && size(self.access.certificates) == 0)"

_INNER = 'self.find("[^\\\\[\\\\]]+")'  # of [::1]:11311
_NOT_ONE_MACHINE = json.dumps(f"^(?:{NOT_ONE_MACHINE})")
_FOUR_NUMBERS = json.dumps(f"^{FOUR_NUMBERS}(?::|$)")  # CEL reads a text as JSON writes it


def _other(protocol: Protocol) -> Protocol:
    return Protocol.CAST if protocol is Protocol.MCA else Protocol.MCA


def _lets_in(edge: str) -> str:
    return f'(size(self.access.edges) == 0 || "{edge}" in self.access.edges)'


def _remote_rules(protocol: Protocol) -> tuple[Rule, Rule]:
    needed, other = _NUMBER_THERE[protocol], _NUMBER_THERE[_other(protocol)]
    return (
        Rule(
            "spec.remote",
            f'self.protocol != "{protocol}" || has(self.{needed})',
            f"protocol {protocol} needs {needed}, the number of the remote queue",
        ),
        Rule(
            "spec.remote",
            f'self.protocol != "{protocol}" || !has(self.{other})',
            f"{other} does not apply to protocol {protocol}: remove it",
        ),
    )


QUEUE_RULES = (
    Rule(
        "",
        f"{_name('self')} == {_name('oldSelf')}",
        "queueName cannot be changed: create another Queue and delete this one",
    ),
    Rule(
        "spec.domain",
        "self == oldSelf",
        "domain cannot be changed: create another Queue with another queueName and delete this one",
    ),
    Rule("spec.domain", f'self != "{REGISTRY_DOMAIN}"', CATALOGUES_DOMAIN),
    Rule("spec.visibilityTimeout", 'self.matches("[1-9]")', NO_TIME),
    Rule(
        "spec.queueName",
        f"bytes(self).size() <= {MAX_NAME_BYTES}",
        f"a queue's name must have 1 to {MAX_NAME_BYTES} bytes",
    ),
    Rule("spec.queueName", f'!self.startsWith("{PREFIX}")', CHOOSE_ANOTHER),
    Rule(
        "spec",
        f'self.domain == "{LOG_DOMAIN}" || {_NO_TEXT}',
        f"bindings.text needs domain '{LOG_DOMAIN}', which holds the text service's log",
    ),
    Rule("spec", f"{_WHOEVER} || {_NO_TEXT}", TEXT_HAS_NO_CLIENT_IDENTITY),
    Rule("spec", f"{_WHOEVER} || !has(self.bindings.ring.inbox)", RING_HAS_NO_CLIENT_IDENTITY),
    Rule(
        "spec",
        "size(self.access.certificates) == 0 || !has(self.bindings.rqpCast.key)",
        CAST_HAS_NO_CERTIFICATES,
    ),
    Rule("spec", f"{_lets_in(TEXT_EDGE)} || {_NO_TEXT}", TEXT_EDGE_EXCLUDED),
    Rule("spec", f"{_lets_in(RING_EDGE)} || !has(self.bindings.ring.inbox)", RING_EDGE_EXCLUDED),
    Rule("spec.access.peers[]", "isIP(self) || isCIDR(self)", NO_NETWORK),
    Rule("spec.access.peers[]", "!isCIDR(self) || cidr(self) == cidr(self).masked()", HOST_BITS),
    Rule(
        "spec",
        f"!has(self.remote) || !({_HAS_NUMBERS})",
        "remote cannot be combined with bindings.rqpMca.queueId, bindings.rqpCast.key or bindings.ring: two "
        "systems could forward a message to each other for ever",
    ),
    *_remote_rules(Protocol.MCA),
    *_remote_rules(Protocol.CAST),
    Rule(
        "spec.remote",
        f'self.protocol != "{Protocol.MCA}" || self.maxMessageBytes <= {MCA_LARGEST_BODY}',
        TOO_LARGE_FOR_MCA,
    ),
    Rule(
        "spec.bindings.ring",
        "!has(self.inbox) || !has(self.outbox) || self.inbox != self.outbox",
        "inbox and outbox are both of one group: messages would loop; choose two groups",
    ),
)

PEER_RULES = (
    *(
        Rule(
            "spec",
            f'!has(self.{to_camel(name)}) || self.protocol == "{protocol}"',
            f"{to_camel(name)} applies to protocol {protocol} only: remove it",
        )
        for name, protocol in OF_ONE_PROTOCOL.items()
    ),
    Rule(
        "spec",
        f'self.protocol != "{Protocol.CAST}" || self.addresses.all(address, !address.contains("["))',
        f"{Protocol.CAST} supports IPv4 addresses only",
    ),
    Rule(
        "spec",
        f'self.protocol == "{PeerProtocol.RING}" || self.addresses.all(address, !address.matches({_NOT_ONE_MACHINE}))',
        NO_PEER,
    ),
    Rule(
        "spec.addresses[]",
        f'!self.startsWith("[") || (isIP({_INNER}) && ip({_INNER}).family() == 6)',
        "the text in [ ] must be an IPv6 address, as in [::1]:11311",
    ),
    Rule("spec.addresses[]", f'!self.matches({_FOUR_NUMBERS}) || isIP(self.find("^[0-9.]+"))', NO_IPV4),
)

REDRIVE_RULES = (
    Rule("spec", "self == oldSelf", "a Redrive cannot be changed: create another one with another name"),
    *(
        Rule(
            f"spec.{field}",
            f"bytes(self).size() <= {MAX_NAME_BYTES}",
            f"a queue's name must have 1 to {MAX_NAME_BYTES} bytes",
        )
        for field in ("source", "target")
    ),
)
