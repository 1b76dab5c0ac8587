"""Represent a queue as a handle: its identity from creation to deletion, and its current document."""

from __future__ import annotations

from dataclasses import dataclass

from services.store.model.admission import Admission, admission
from services.store.model.client import Client
from services.store.model.errors import AccessDenied
from services.store.model.internal import KEEPER_ONLY, is_internal
from services.store.model.keys import DomainKeys
from services.store.model.spec import Delivery, QueueSpec

OF_A_RESOURCE = "kubernetes"  # begins the owner of a resource's queue; namespace and name follow
RELEASED = "released"  # precedes a former owner; the next declaration takes the queue over


def released(owner: str) -> str:
    """Return the owner text of a queue that `owner` has released."""
    return f"{RELEASED} {owner}"


def is_of_a_resource(owner: str) -> bool:
    """Return whether a Kubernetes resource owns the queue."""
    return owner.startswith(f"{OF_A_RESOURCE} ")


@dataclass(frozen=True, slots=True)
class Listed:
    """A queue of the catalogue, and its owner."""

    name: str
    qid: str
    owner: str


@dataclass(slots=True, eq=False, weakref_slot=True)
class Queue:
    """A handle of one queue. Ids are never reused: a deleted queue's handle stays invalid after CREATE (tmq.md 5.6)."""

    name: str  # surrogateescape: any octets
    qid: str  # the id; a queue created again under the same name has another one
    domain: str  # the transaction domain
    owner: str  # 'edge:tmq', 'file', 'cli', 'kubernetes shop/orders', or 'released <former owner>'
    spec: QueueSpec  # the current document
    keys: tuple[str, ...] = ()  # its keys in Redis
    replicas: int = 0  # that must have a message before it is acknowledged
    at_most_once: bool = False  # settled before delivery
    admission: Admission | None = None  # from its `access`; None admits every client
    unkept: bool = False  # its ack level exceeds what the store guaranteed when last probed

    def __post_init__(self) -> None:
        self.keys = DomainKeys(self.domain).queue(self.qid)
        self.follow(self.spec, self.owner)

    def follow(self, spec: QueueSpec, owner: str) -> None:
        """Apply a changed document to this handle."""
        self.spec = spec
        self.owner = owner
        self.replicas = spec.replicas()
        self.at_most_once = spec.delivery is Delivery.AT_MOST_ONCE
        if is_internal(self.name):
            self.admission = KEEPER_ONLY
        elif self.admission is None or self.admission.access != spec.access:
            self.admission = admission(spec.access)

    def refusal(self, client: Client) -> AccessDenied | None:
        """Return why this client has no access, by the current document, or None."""
        if self.admission is None or not (problem := self.admission.problem(client)):
            return None
        return AccessDenied(f"queue {self.name!r} is not for this client: {problem}")

    def admit(self, client: Client) -> Queue:
        """Return the queue itself. Raises AccessDenied."""
        if (refusal := self.refusal(client)) is not None:
            raise refusal
        return self
