"""Validate the Queue document, which `queues.yaml`, the command line and Kubernetes resources declare.

    apiVersion: penstock.dev/v1alpha1
    kind: Queue
    metadata: {name: orders}
    spec: {maxLength: 100000, ackLevel: fsync}

Fields, names and defaults are the same everywhere. Fields that this version does not support are refused, never
ignored.
"""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from services.store.model.access_lists import Access
from services.store.model.bindings import Bindings, contradiction
from services.store.model.document import API_VERSION, Document, refuse_bool, text_schema
from services.store.model.duration import MAX_NUMBER, STORED, Duration, format_duration
from services.store.model.keys import REGISTRY_DOMAIN
from services.store.model.rqp_binding import Protocol, Remote, number_name
from services.store.model.text_binding import TextBinding

ACK_LEVEL = re.compile("memory|fsync|replicated:([1-9][0-9]?)")
NO_ACK_LEVEL = "an ack level is memory, fsync or replicated:<n>"
STRICTEST = ""  # the strictest ack level that the store can guarantee (`Promises.settled`)
MAX_NAME_BYTES = 255
UNBOUNDED = 0
WATCHED = {"deletions": "seen"}  # context of documents whose deletion is noticed: Kubernetes resources


def check_ack_level(level: str) -> str:
    """Return an ack level. Raises ValueError."""
    if level != STRICTEST:
        replicas_of(level)
    return level


def replicas_of(level: str) -> int:
    """Return how many replicas must have a message before it is acknowledged. Raises ValueError."""
    found = ACK_LEVEL.fullmatch(level)
    if not found:
        raise ValueError(NO_ACK_LEVEL)
    return int(found[1] or 0)


def check_domain(name: str, info: ValidationInfo) -> str:
    """Refuse the catalogue's domain, except in stored documents. Raises ValueError."""
    if name == REGISTRY_DOMAIN and info.context != STORED:
        raise ValueError(CATALOGUES_DOMAIN)
    return name


CATALOGUES_DOMAIN = (
    f"the domain {REGISTRY_DOMAIN!r} is reserved for the store's catalogue: choose another name"
)
NO_DOMAIN = "a domain has 1 to 63 letters, digits, dots, dashes and underscores"
DOMAIN_NAME = re.compile("[A-Za-z0-9_.-]{1,63}")
DomainName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=63,
        pattern=r"^[A-Za-z0-9_.-]+$",
        json_schema_extra={"patternErrorMessage": NO_DOMAIN},
    ),
    AfterValidator(check_domain),
]
AckLevel = Annotated[
    str, AfterValidator(check_ack_level), text_schema(f"(?:{ACK_LEVEL.pattern})?", 13, NO_ACK_LEVEL)
]


class Overflow(StrEnum):
    """How a full queue handles a new message."""

    REJECT = "reject"  # the put is refused
    DEAD_LETTER_OLDEST = "dead_letter_oldest"  # the oldest ready message becomes a dead letter


class Delivery(StrEnum):
    """When a delivered message is settled."""

    AT_LEAST_ONCE = "at-least-once"  # when the consumer acknowledges it
    AT_MOST_ONCE = "at-most-once"  # before it is sent


class DeletionPolicy(StrEnum):
    """How the deletion of its document affects the queue."""

    RETAIN = "Retain"  # the queue stays in the store
    DELETE_IF_EMPTY = "DeleteIfEmpty"
    DELETE = "Delete"


def check_deletion_policy(policy: DeletionPolicy, info: ValidationInfo) -> DeletionPolicy:
    """Refuse deletion where nothing detects it: outside of Kubernetes and stored documents. Raises ValueError."""
    if policy is not DeletionPolicy.RETAIN and info.context not in (STORED, WATCHED):
        raise ValueError("must be 'Retain', the only policy that this version keeps")
    return policy


def check_timeout(ms: int, info: ValidationInfo) -> int:
    """Refuse a timeout of 0, except in stored documents. Raises ValueError."""
    if ms == 0 and info.context != STORED:
        raise ValueError(NO_TIME)
    return ms


NO_TIME = "0s would return messages that an edge still holds: write 1ms or more, as in 30s"
Number = Annotated[int, Field(ge=0, le=MAX_NUMBER), BeforeValidator(refuse_bool)]


class DeadLetterSpec(Document):
    """How long, and how many, dead letters are kept."""

    max_length: Number = Field(
        100_000, description="dead letters to keep; the oldest are removed first; 0 = no bound"
    )
    retention: Duration = Field(0, description="how long dead letters are kept; 0s = for ever")


LOG_DOMAIN = "main"  # holds the text service's log, as one step of the store changes one domain


class QueueSpec(Document):
    """How a queue stores its messages, and how protocols address it."""

    domain: DomainName = Field(
        "main", description="the transaction domain of the store; it cannot be changed"
    )
    max_length: Number = Field(UNBOUNDED, description="messages; 0 = no bound")
    max_bytes: Number = Field(UNBOUNDED, description="octets of bodies; 0 = no bound")
    overflow: Overflow = Overflow.REJECT  # what a full queue does with a new message
    message_ttl: Duration = Field(0, alias="messageTTL", description="0s = messages never expire")
    visibility_timeout: Annotated[Duration, AfterValidator(check_timeout)] = Field(
        30_000, description="after this time, messages of a dead edge return to the queue"
    )
    max_deliveries: Number = Field(20, description="failed deliveries before a message is dead; 0 = no bound")
    dead_letter: DeadLetterSpec = DeadLetterSpec()  # how long, and how many, are kept
    ack_level: AckLevel = Field(
        STRICTEST,
        description="where a message is stored before it is acknowledged: memory, fsync, replicated:<n>; '' = the "
        "strictest that the store can guarantee",
    )
    delivery: Delivery = Delivery.AT_LEAST_ONCE  # when a delivered message is settled
    paused: bool = Field(False, description="whether puts and takes are refused")
    # what happens to the queue when its document is deleted
    deletion_policy: Annotated[DeletionPolicy, AfterValidator(check_deletion_policy)] = DeletionPolicy.RETAIN
    access: Access = Access()  # which clients may put and take
    bindings: Bindings = Bindings()  # how protocols address it
    remote: Remote | None = None  # the system to which its messages are sent

    @model_validator(mode="after")
    def _is_in_the_log_domain(self) -> Self:
        if self.bindings.text != TextBinding() and self.domain != LOG_DOMAIN:
            raise ValueError(f"bindings.text needs domain {LOG_DOMAIN!r}, which holds the text service's log")
        return self

    @model_validator(mode="after")
    def _access_fits_bindings(self) -> Self:
        if problem := contradiction(self.access, self.bindings):
            raise ValueError(problem)
        return self

    @model_validator(mode="after")
    def _is_local_or_remote(self) -> Self:
        if self.remote is not None and self.numbers():
            raise ValueError(
                "remote cannot be combined with bindings.rqpMca.queueId, bindings.rqpCast.key or bindings.ring: two "
                "systems could forward a message to each other for ever"
            )
        return self

    def numbers(self) -> list[str]:
        """Return the unique numbers of the queue: 'rqp-mca 7', 'rqp-cast 7', 'ring-inbox 7'."""
        given: dict[str, int | None] = {
            Protocol.MCA: self.bindings.rqp_mca.queue_id,
            Protocol.CAST: self.bindings.rqp_cast.key,
            **self.bindings.ring.numbers(),
        }
        return [number_name(protocol, number) for protocol, number in given.items() if number is not None]

    def claims(self) -> list[str]:
        """Return the exclusive claims of the queue: its numbers, and destinations ('to rqp-mca 7 at warehouse')."""
        return [*self.numbers(), *(self.remote.destinations() if self.remote is not None else ())]

    def subscription(self, name: str) -> str:
        """Return the queue's subscription to the log as JSON; '' without one."""
        patterns = self.bindings.text.subscribe
        if not patterns:
            return ""
        return json.dumps({"name": name, "patterns": patterns, "ackLevel": self.ack_level})

    def replicas(self) -> int:
        """Return how many replicas must have a message before it is acknowledged."""
        return replicas_of(self.ack_level)

    def fields(self) -> list[str | int]:
        """Return the fields of the queue's hash: its limits (lua/queues.lua), and the document for inspection."""
        limits = (
            *(self.max_length, self.max_bytes, self.overflow.value, self.message_ttl),
            *(self.max_deliveries, int(self.paused), self.dead_letter.max_length, self.ack_level),
            self.bindings.text.publish or "*",
            self.remote.max_message_bytes if self.remote is not None else UNBOUNDED,
        )
        document = self.model_dump_json(by_alias=True)
        no_condition = ("condition", "") if self.remote is None else ()  # clears that of a former remote
        return [
            "limits",
            " ".join(map(str, limits)),
            "visibility",
            self.visibility_timeout,
            "document",
            document,
            *no_condition,
        ]


LEGIBLE = re.compile(r"[^\x00-\x1f\x7f]+")
NO_LEGIBLE = "a queue's name has no control characters such as line feeds and tabs"


def check_name(name: str) -> str:
    """Return a valid name of a new queue; only clients may use any octets (tmq.md 2.1). Raises ValueError."""
    if not LEGIBLE.fullmatch(check_size(name)):
        raise ValueError(NO_LEGIBLE)
    return name


def check_size(name: str) -> str:
    """Return a name that an existing queue may have. Raises ValueError."""
    size = len(name.encode("utf-8", "surrogateescape"))
    if not 1 <= size <= MAX_NAME_BYTES:
        raise ValueError(f"a queue's name has 1 to {MAX_NAME_BYTES} octets, this one has {size}")
    return name


class Metadata(Document):
    """The name and labels of a queue; further metadata is ignored."""

    model_config = ConfigDict(extra="ignore")
    name: Annotated[str, AfterValidator(check_size)]  # a client may have made it
    labels: dict[str, str] = Field(default_factory=dict)


QueueName = Annotated[
    str,
    AfterValidator(check_name),
    WithJsonSchema(
        {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_NAME_BYTES,
            "pattern": f"^{LEGIBLE.pattern}$",
            "patternErrorMessage": NO_LEGIBLE,
        }
    ),
]


class NamedQueueSpec(QueueSpec):
    """How a queue stores its messages, and how protocols address it."""

    queue_name: QueueName | None = Field(
        None, description="the queue's name in the store; none = metadata.name"
    )


class QueueDocument(Document):
    """A complete Queue document, as in queues.yaml."""

    # version of the fields
    api_version: Literal["penstock.dev/v1alpha1"] = Field(API_VERSION, alias="apiVersion")
    kind: Literal["Queue"] = "Queue"  # of the document
    metadata: Metadata  # name and labels
    spec: NamedQueueSpec = NamedQueueSpec()  # the queue itself

    @property
    def name(self) -> str:
        """The queue's name in the store."""
        return self.spec.queue_name or self.metadata.name

    @property
    def queue(self) -> QueueSpec:
        """The spec without `queueName`."""
        return QueueSpec.model_validate(self.spec.model_dump(exclude={"queue_name"}), context=STORED)


def to_document(name: str, spec: QueueSpec) -> dict[str, Any]:
    """Return the document of a queue with the fields that differ from the defaults, durations as text."""
    plain = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    for key in ("messageTTL", "visibilityTimeout"):
        if key in plain:
            plain[key] = format_duration(plain[key])
    if "retention" in plain.get("deadLetter", {}):
        plain["deadLetter"]["retention"] = format_duration(plain["deadLetter"]["retention"])
    return {"apiVersion": API_VERSION, "kind": "Queue", "metadata": {"name": name}, "spec": plain}
