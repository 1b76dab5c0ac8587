"""How RQP sees a queue: `bindings.rqpMca` and `bindings.rqpCast` for what comes in, `remote` for a transmission queue.

RQP knows queues by numbers of 32 bits (rqp_mca.md 1.1, rqp_cast.md 2). Each belongs to one queue of the store.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from services.store.model.document import Document, is_text, refuse_bool, written
from services.store.model.duration import STORED
from services.store.model.records import MAX_LENGTH

# no space of any alphabet: the class \s is another one in each language of patterns
PEER_NAME = re.compile(
    r"[^\x00-\x20,\x7f\x85\xa0" "\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]{1,255}"
)
MAX_PEER_NAME = 255  # characters
NO_PEER_NAME = "a peer's name has 1 to 255 characters, no spaces and no commas"
EVERY_PEER = "*"  # of a queue that leads to all that are known
CERTAIN = "certain"  # attribute of a message in a transmission queue: stands over what its queue says
CERTAIN_TEXTS = {"true": True, "false": False}
MAX_MESSAGE_BYTES = 1 << 20  # what the peers take, unless their operators say otherwise
MCA_LARGEST_BODY = 15 << 20  # octets: no RQP/MCA peer of ours can be set to take more

U32 = Annotated[int, Field(ge=0, le=0xFFFF_FFFF), BeforeValidator(refuse_bool)]


class Protocol(StrEnum):
    """Who carries messages to other systems."""

    MCA = "rqp-mca"  # rqp_mca.md
    CAST = "rqp-cast"  # rqp_cast.md


TOO_LARGE_FOR_MCA = (
    f"maxMessageBytes is at most {MCA_LARGEST_BODY} for protocol {Protocol.MCA}: no peer takes more"
)


class DuplicateResult(StrEnum):
    """What a message is answered that is here already (rqp_cast.md 5.4)."""

    FAILURE = "failure"  # as the document says
    SUCCESS = "success"  # it is safely here: its sender can let go of it


def parse_certain(value: object) -> bool | None:
    """Return what the attribute `certain` says, as a boolean or as text; None if it says neither yes nor no."""
    if isinstance(value, str):
        return CERTAIN_TEXTS.get(value.lower())
    return value if isinstance(value, bool) else None


def number_name(protocol: str, number: int) -> str:
    """How the registry names a number: 'rqp-mca 7'."""
    return f"{protocol} {number}"


def destination_name(protocol: str, number: int, peer: str) -> str:
    """How the registry names where a transmission queue leads: 'to rqp-mca 7 at warehouse'; '*' is every peer."""
    return f"to {number_name(protocol, number)} at {peer}"


def peers_overlap(one: str, other: str) -> bool:
    """Whether two claims on one destination are in each other's way; '' is of a number, which has one owner."""
    return one == other or EVERY_PEER in (one, other)


def split_claim(claim: str) -> tuple[str, str]:
    """('to rqp-mca 7', 'warehouse') of a destination, ('rqp-mca 7', '') of a number."""
    what, _, peer = claim.partition(" at ")
    return what, peer


def check_peer_name(name: str) -> str:
    if not (PEER_NAME.fullmatch(name) and is_text(name)):
        raise ValueError(NO_PEER_NAME)
    return name


def refuse_one_name(value: object) -> object:
    """One name alone looks as if it were enough."""
    if isinstance(value, str):
        raise ValueError("write a list of names, as in [warehouse, shop]")
    return value


PeerName = Annotated[
    str, AfterValidator(check_peer_name), written(PEER_NAME.pattern, MAX_PEER_NAME, NO_PEER_NAME)
]
PeerNames = Annotated[tuple[PeerName, ...], BeforeValidator(refuse_one_name)]


class McaBinding(Document):
    """How RQP/MCA fills the queue."""

    queue_id: U32 | None = Field(None, description="its number in RQP/MCA; none = it cannot be reached")
    exclusive: bool = Field(True, description="one sender at a time may have it assigned")


class CastBinding(Document):
    """How RQP/cast fills the queue."""

    key: U32 | None = Field(None, description="its key in RQP/cast; none = it cannot be reached")
    duplicate_result: DuplicateResult = Field(
        DuplicateResult.FAILURE, description="the answer to a message that was received before"
    )


class Remote(Document):
    """Where what is put into a transmission queue goes: to a queue of the same protocol on other systems."""

    protocol: Protocol = Field(description="who carries the messages there")
    queue_id: U32 | None = Field(None, description="rqp-mca: the number of the queue there")
    key: U32 | None = Field(None, description="rqp-cast: the key of the queue there")
    peers: PeerNames = Field(
        (), max_length=1000, description="a peer that may get it; none = all that are known of that protocol"
    )
    reliable: bool = Field(True, description="kept here until its receipt is confirmed")
    max_message_bytes: Annotated[int, BeforeValidator(refuse_bool)] = Field(
        MAX_MESSAGE_BYTES, ge=1, le=MAX_LENGTH, description="octets of a body; larger ones are not put in"
    )

    @model_validator(mode="after")
    def _has_the_number_of_its_protocol(self) -> Self:
        wanted, other = ("queueId", "key") if self.protocol is Protocol.MCA else ("key", "queueId")
        given = {"queueId": self.queue_id, "key": self.key}
        if given[wanted] is None:
            raise ValueError(f"protocol {self.protocol} needs {wanted}, the queue's number there")
        if given[other] is not None:
            raise ValueError(f"{other} is not of protocol {self.protocol}: leave it out")
        return self

    @model_validator(mode="after")
    def _can_be_carried(self, info: ValidationInfo) -> Self:
        """Refuse a bound that the protocol cannot keep; a document that is stored already stays readable."""
        too_large = self.protocol is Protocol.MCA and self.max_message_bytes > MCA_LARGEST_BODY
        if too_large and info.context != STORED:
            raise ValueError(TOO_LARGE_FOR_MCA)
        return self

    def is_certain(self, attributes: Mapping[str, Any]) -> bool:
        """Whether a message is kept until its receipt is confirmed: as it says itself, else as its queue does."""
        told = parse_certain(attributes.get(CERTAIN))
        return self.reliable if told is None else told

    def destinations(self) -> list[str]:
        """Where no other queue may lead, too: an RQP/MCA peer has its queue assigned to one sender (rqp_mca.md 2.3)."""
        if self.protocol is not Protocol.MCA:
            return []
        return [
            destination_name(self.protocol, self.number, peer)
            for peer in dict.fromkeys(self.peers or (EVERY_PEER,))
        ]

    @property
    def number(self) -> int:
        """The queue's number there, whatever its protocol calls it."""
        number = self.queue_id if self.protocol is Protocol.MCA else self.key
        assert number is not None
        return number
