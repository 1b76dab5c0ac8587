"""Validate the RQP sections of a queue: `bindings.rqpMca` and `bindings.rqpCast` for incoming messages, and `remote`.

RQP identifies queues by numbers of 32 bits (rqp_mca.md 1.1, rqp_cast.md 2). Each belongs to one queue of the store. A
transmission queue has `remote`, the queue on other systems that it leads to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from services.store.model.document import Document, is_text, list_as_in, refuse_bool, text_schema
from services.store.model.duration import STORED
from services.store.model.records import MAX_LENGTH

# excludes the spaces of all alphabets, as the class \s differs between regular expression dialects
PEER_NAME = re.compile(
    r"[^\x00-\x20,\x7f\x85\xa0" "\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]{1,255}"
)
MAX_PEER_NAME = 255  # characters
NO_PEER_NAME = "a peer's name has 1 to 255 characters other than spaces and commas"
EVERY_PEER = "*"  # in the claim of a queue that leads to all known peers
CERTAIN = "certain"  # attribute of a message in a transmission queue; overrides `remote.reliable`
CERTAIN_TEXTS = {"true": True, "false": False}
MAX_MESSAGE_BYTES = 1 << 20  # what peers accept by default
MCA_LARGEST_BODY = 15 << 20  # octets: the upper limit of every RQP/MCA edge's setting

U32 = Annotated[int, Field(ge=0, le=0xFFFF_FFFF), BeforeValidator(refuse_bool)]


class Protocol(StrEnum):
    """The protocol that carries messages to other systems."""

    MCA = "rqp-mca"  # rqp_mca.md
    CAST = "rqp-cast"  # rqp_cast.md


TOO_LARGE_FOR_MCA = (
    f"maxMessageBytes is at most {MCA_LARGEST_BODY} for protocol {Protocol.MCA}: no peer accepts more"
)


class DuplicateResult(StrEnum):
    """The answer to a message that was received before (rqp_cast.md 5.4)."""

    FAILURE = "failure"  # as the original documentation says
    SUCCESS = "success"  # it is stored: its sender can forget it


def parse_certain(value: object) -> bool | None:
    """Parse the attribute `certain`, a boolean or a text; None if it is neither true nor false."""
    if isinstance(value, str):
        return CERTAIN_TEXTS.get(value.lower())
    return value if isinstance(value, bool) else None


def number_name(protocol: str, number: int) -> str:
    """Return the registry's name of a number: 'rqp-mca 7'."""
    return f"{protocol} {number}"


def destination_name(protocol: str, number: int, peer: str) -> str:
    """Return the registry's name of a destination: 'to rqp-mca 7 at warehouse'; '*' is every peer."""
    return f"to {number_name(protocol, number)} at {peer}"


def peers_overlap(one: str, other: str) -> bool:
    """Return whether two claims on one destination conflict; the peer of a number, which has one owner, is ''."""
    return one == other or EVERY_PEER in (one, other)


def split_claim(claim: str) -> tuple[str, str]:
    """Split a claim: ('to rqp-mca 7', 'warehouse') for a destination, ('rqp-mca 7', '') for a number."""
    what, _, peer = claim.partition(" at ")
    return what, peer


def check_peer_name(name: str) -> str:
    """Return a peer's name. Raises ValueError for text that cannot be one."""
    if not (PEER_NAME.fullmatch(name) and is_text(name)):
        raise ValueError(NO_PEER_NAME)
    return name


PeerName = Annotated[
    str, AfterValidator(check_peer_name), text_schema(PEER_NAME.pattern, MAX_PEER_NAME, NO_PEER_NAME)
]
PeerNames = Annotated[tuple[PeerName, ...], list_as_in("[warehouse, shop]")]


class McaBinding(Document):
    """How RQP/MCA addresses the queue."""

    queue_id: U32 | None = Field(None, description="its number in RQP/MCA; none = not reachable by RQP/MCA")
    exclusive: bool = Field(True, description="whether only one sender at a time may have the queue assigned")


class CastBinding(Document):
    """How RQP/cast addresses the queue."""

    key: U32 | None = Field(None, description="its key in RQP/cast; none = not reachable by RQP/cast")
    duplicate_result: DuplicateResult = Field(
        DuplicateResult.FAILURE, description="the answer to a message that was received before"
    )


class Remote(Document):
    """The queue on other systems that a transmission queue leads to."""

    protocol: Protocol = Field(description="the protocol that carries the messages")
    queue_id: U32 | None = Field(None, description="rqp-mca: the number of the remote queue")
    key: U32 | None = Field(None, description="rqp-cast: the key of the remote queue")
    peers: PeerNames = Field(
        (), max_length=1000, description="a peer to send to; none = all known peers of the protocol"
    )
    reliable: bool = Field(True, description="whether messages are kept until their receipt is confirmed")
    max_message_bytes: Annotated[int, BeforeValidator(refuse_bool)] = Field(
        MAX_MESSAGE_BYTES, ge=1, le=MAX_LENGTH, description="bytes of a body; larger messages are refused"
    )

    @model_validator(mode="after")
    def _has_the_number_of_its_protocol(self) -> Self:
        wanted, other = ("queueId", "key") if self.protocol is Protocol.MCA else ("key", "queueId")
        given = {"queueId": self.queue_id, "key": self.key}
        if given[wanted] is None:
            raise ValueError(f"protocol {self.protocol} needs {wanted}, the number of the remote queue")
        if given[other] is not None:
            raise ValueError(f"{other} does not apply to protocol {self.protocol}: remove it")
        return self

    @model_validator(mode="after")
    def _can_be_carried(self, info: ValidationInfo) -> Self:
        """Refuse a bound that the protocol cannot handle; stored documents stay readable."""
        too_large = self.protocol is Protocol.MCA and self.max_message_bytes > MCA_LARGEST_BODY
        if too_large and info.context != STORED:
            raise ValueError(TOO_LARGE_FOR_MCA)
        return self

    def is_certain(self, attributes: Mapping[str, Any]) -> bool:
        """Return whether a message is kept until its receipt is confirmed; its own attribute overrides the queue's."""
        certain = parse_certain(attributes.get(CERTAIN))
        return self.reliable if certain is None else certain

    def destinations(self) -> list[str]:
        """Return the destinations to claim: an RQP/MCA peer assigns its queue to a single sender (rqp_mca.md 2.3)."""
        if self.protocol is not Protocol.MCA:
            return []
        return [
            destination_name(self.protocol, self.number, peer)
            for peer in dict.fromkeys(self.peers or (EVERY_PEER,))
        ]

    @property
    def number(self) -> int:
        """The number of the remote queue: its queueId or key."""
        number = self.queue_id if self.protocol is Protocol.MCA else self.key
        assert number is not None
        return number
