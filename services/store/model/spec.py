"""The Queue document: what `queues.yaml`, the command line and (as a resource) Kubernetes declare.

    apiVersion: penstock.dev/v1alpha1
    kind: Queue
    metadata: {name: orders}
    spec: {maxLength: 100000, ackLevel: fsync}

The same fields, names and defaults everywhere. A field that this version cannot keep is refused, never ignored.
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
from services.store.model.document import API_VERSION, Document, refuse_bool, written
from services.store.model.duration import MAX_NUMBER, STORED, Duration, format_duration
from services.store.model.keys import REGISTRY_DOMAIN
from services.store.model.rqp_binding import Protocol, Remote, number_name
from services.store.model.text_binding import TextBinding

ACK_LEVEL = re.compile("memory|fsync|replicated:([1-9][0-9]?)")
NO_ACK_LEVEL = "an ack level is memory, fsync or replicated:<n>"
STRICTEST = ""  # an ack level that is left to the store: the strictest that it can keep (`Promises.settled`)
MAX_NAME_BYTES = 255
UNBOUNDED = 0
WATCHED = {"deletions": "seen"}  # context of documents whose deletion somebody sees: resources of an operator


def check_ack_level(level: str) -> str:
    if level != STRICTEST:
        replicas_of(level)
    return level


def replicas_of(level: str) -> int:
    """How many replicas must have a message before it is acknowledged. Raises ValueError for what is no level."""
    found = ACK_LEVEL.fullmatch(level)
    if not found:
        raise ValueError(NO_ACK_LEVEL)
    return int(found[1] or 0)


def check_domain(name: str, info: ValidationInfo) -> str:
    """What the store holds is read as it is."""
    if name == REGISTRY_DOMAIN and info.context != STORED:
        raise ValueError(CATALOGUES_DOMAIN)
    return name


CATALOGUES_DOMAIN = f"the domain {REGISTRY_DOMAIN!r} is that of the store's catalogue: choose another name"
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
    str, AfterValidator(check_ack_level), written(f"(?:{ACK_LEVEL.pattern})?", 13, NO_ACK_LEVEL)
]


class Overflow(StrEnum):
    """What a full queue does with one message more."""

    REJECT = "reject"  # the producer is told
    DEAD_LETTER_OLDEST = "dead_letter_oldest"  # the oldest ready one goes to the dead letters


class Delivery(StrEnum):
    """When a message that was given out is settled."""

    AT_LEAST_ONCE = "at-least-once"  # by the consumer's next step
    AT_MOST_ONCE = "at-most-once"  # before it is sent


class DeletionPolicy(StrEnum):
    """What happens to the messages when the document goes."""

    RETAIN = "Retain"  # the queue stays in the store
    DELETE_IF_EMPTY = "DeleteIfEmpty"
    DELETE = "Delete"


def check_deletion_policy(policy: DeletionPolicy, info: ValidationInfo) -> DeletionPolicy:
    """Only an operator sees a document go. What the store holds is read as it is."""
    if policy is not DeletionPolicy.RETAIN and info.context not in (STORED, WATCHED):
        raise ValueError("must be 'Retain', the only policy that this version keeps")
    return policy


def check_some_time(ms: int, info: ValidationInfo) -> int:
    """What the store holds is read as it is."""
    if ms == 0 and info.context != STORED:
        raise ValueError(NO_TIME)
    return ms


NO_TIME = "0s would give messages back that an edge still has: write 1ms or more, as in 30s"
Number = Annotated[int, Field(ge=0, le=MAX_NUMBER), BeforeValidator(refuse_bool)]


class DeadLetterSpec(Document):
    """What becomes of messages that nobody could deal with."""

    max_length: Number = Field(100_000, description="dead letters kept; the oldest go first; 0 = no bound")
    retention: Duration = Field(0, description="how long dead letters are kept; 0s = for ever")


LOG_DOMAIN = "main"  # the domain that has the text service's log: a step of the store changes one domain


class QueueSpec(Document):
    """How a queue keeps its messages, and how protocols see it."""

    domain: DomainName = Field("main", description="the part of the store that keeps it, for good")
    max_length: Number = Field(UNBOUNDED, description="messages; 0 = no bound")
    max_bytes: Number = Field(UNBOUNDED, description="octets of bodies; 0 = no bound")
    overflow: Overflow = Overflow.REJECT
    message_ttl: Duration = Field(0, alias="messageTTL", description="0s = messages never expire")
    visibility_timeout: Annotated[Duration, AfterValidator(check_some_time)] = Field(
        30_000, description="when a dead edge's messages go back"
    )
    max_deliveries: Number = Field(20, description="failed deliveries before a message is dead; 0 = no bound")
    dead_letter: DeadLetterSpec = DeadLetterSpec()
    ack_level: AckLevel = Field(
        STRICTEST,
        description="where a message is before it is acknowledged: memory, fsync, replicated:<n>; '' = the strictest "
        "that the store can keep",
    )
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    paused: bool = Field(False, description="nothing is put in or given out")
    deletion_policy: Annotated[DeletionPolicy, AfterValidator(check_deletion_policy)] = DeletionPolicy.RETAIN
    access: Access = Access()
    bindings: Bindings = Bindings()
    remote: Remote | None = None

    @model_validator(mode="after")
    def _is_where_the_log_is(self) -> Self:
        if self.bindings.text != TextBinding() and self.domain != LOG_DOMAIN:
            raise ValueError(f"bindings.text needs domain {LOG_DOMAIN!r}, where the text service's log is")
        return self

    @model_validator(mode="after")
    def _keeps_out_what_it_can(self) -> Self:
        if problem := contradiction(self.access, self.bindings):
            raise ValueError(problem)
        return self

    @model_validator(mode="after")
    def _is_here_or_elsewhere(self) -> Self:
        if self.remote is not None and self.numbers():
            raise ValueError(
                "remote leads to another system: such a queue has neither bindings.rqpMca.queueId nor "
                "bindings.rqpCast.key nor bindings.ring, or two systems would pass a message on for ever"
            )
        return self

    def numbers(self) -> list[str]:
        """What the queue is known by beside its name, each its own: 'rqp-mca 7', 'rqp-cast 7', 'ring-inbox 7'."""
        given: dict[str, int | None] = {
            Protocol.MCA: self.bindings.rqp_mca.queue_id,
            Protocol.CAST: self.bindings.rqp_cast.key,
            **self.bindings.ring.numbers(),
        }
        return [number_name(protocol, number) for protocol, number in given.items() if number is not None]

    def claims(self) -> list[str]:
        """What no other queue may claim: its numbers, and where it leads ('to rqp-mca 7 at warehouse')."""
        return [*self.numbers(), *(self.remote.destinations() if self.remote is not None else ())]

    def subscription(self, name: str) -> str:
        """What the log knows of a queue that subscribes to it, as JSON; '' if it does not."""
        patterns = self.bindings.text.subscribe
        if not patterns:
            return ""
        return json.dumps({"name": name, "patterns": patterns, "ackLevel": self.ack_level})

    def replicas(self) -> int:
        return replicas_of(self.ack_level)

    def fields(self) -> list[str | int]:
        """The document as the queue hash holds it: one field of limits (lua/queues.lua), the rest for people."""
        limits = (
            *(self.max_length, self.max_bytes, self.overflow.value, self.message_ttl),
            *(self.max_deliveries, int(self.paused), self.dead_letter.max_length, self.ack_level),
            self.bindings.text.publish or "*",
            self.remote.max_message_bytes if self.remote is not None else UNBOUNDED,
        )
        document = self.model_dump_json(by_alias=True)
        nothing_wrong = ("condition", "") if self.remote is None else ()  # of the time when it led elsewhere
        return [
            "limits",
            " ".join(map(str, limits)),
            "visibility",
            self.visibility_timeout,
            "document",
            document,
            *nothing_wrong,
        ]


LEGIBLE = re.compile(r"[^\x00-\x1f\x7f]+")
NO_LEGIBLE = "a queue's name has no control characters, as line feeds and tabs"


def check_name(name: str) -> str:
    """Return the name of a new queue. What clients make for themselves may have names of any octets (tmq.md 2.1)."""
    if not LEGIBLE.fullmatch(check_size(name)):
        raise ValueError(NO_LEGIBLE)
    return name


def check_size(name: str) -> str:
    """Return the name of a queue that may be there already."""
    size = len(name.encode("utf-8", "surrogateescape"))
    if not 1 <= size <= MAX_NAME_BYTES:
        raise ValueError(f"a queue's name has 1 to {MAX_NAME_BYTES} octets, this one has {size}")
    return name


class Metadata(Document):
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
    """How a queue keeps its messages, and how protocols see it."""

    queue_name: QueueName | None = Field(None, description="its name in the store; none = metadata.name")


class QueueDocument(Document):
    """A whole document, as in queues.yaml."""

    api_version: Literal["penstock.dev/v1alpha1"] = Field(API_VERSION, alias="apiVersion")
    kind: Literal["Queue"] = "Queue"
    metadata: Metadata
    spec: NamedQueueSpec = NamedQueueSpec()

    @property
    def name(self) -> str:
        return self.spec.queue_name or self.metadata.name

    @property
    def queue(self) -> QueueSpec:
        return QueueSpec.model_validate(self.spec.model_dump(exclude={"queue_name"}), context=STORED)


def to_document(name: str, spec: QueueSpec) -> dict[str, Any]:
    """The document of a queue as it would be written: only what differs from the defaults, durations as text."""
    plain = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    for key in ("messageTTL", "visibilityTimeout"):
        if key in plain:
            plain[key] = format_duration(plain[key])
    if "retention" in plain.get("deadLetter", {}):
        plain["deadLetter"]["retention"] = format_duration(plain["deadLetter"]["retention"])
    return {"apiVersion": API_VERSION, "kind": "Queue", "metadata": {"name": name}, "spec": plain}
