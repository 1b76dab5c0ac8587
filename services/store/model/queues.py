"""A queue as an edge holds it: a handle that names one life of the queue and what its document says."""

from __future__ import annotations

from dataclasses import dataclass

from services.store.model.admission import Admission, admission
from services.store.model.client import Client
from services.store.model.errors import AccessDenied
from services.store.model.internal import KEEPER_ONLY, is_internal
from services.store.model.keys import DomainKeys
from services.store.model.spec import Delivery, QueueSpec

OF_A_RESOURCE = "kubernetes"  # first word of an owner: its namespace and name follow
RELEASED = "released"  # before an owner who looks after it no more: whoever declares it may have it


def released(owner: str) -> str:
    return f"{RELEASED} {owner}"


def is_of_a_resource(owner: str) -> bool:
    return owner.startswith(f"{OF_A_RESOURCE} ")


@dataclass(frozen=True, slots=True)
class Listed:
    """A queue of the catalogue, and whose it is."""

    name: str
    qid: str
    owner: str


@dataclass(slots=True, eq=False, weakref_slot=True)
class Queue:
    """Ids are never given out twice: a handle of a deleted queue stays unusable after a new CREATE (tmq.md 5.6)."""

    name: str  # surrogateescape: any octets
    qid: str
    domain: str
    owner: (
        str  # who declared it: 'edge:tmq', 'file', 'cli', 'kubernetes shop/orders'; 'released ...': who did
    )
    spec: QueueSpec
    keys: tuple[str, ...] = ()
    replicas: int = 0
    at_most_once: bool = False
    admission: Admission | None = None  # whom its document lets in; None: everybody
    unkept: bool = False  # its ack level is more than the store was last found to keep

    def __post_init__(self) -> None:
        self.keys = DomainKeys(self.domain).queue(self.qid)
        self.follow(self.spec, self.owner)

    def follow(self, spec: QueueSpec, owner: str) -> None:
        """The document changed: this handle goes by it from now on."""
        self.spec = spec
        self.owner = owner
        self.replicas = spec.replicas()
        self.at_most_once = spec.delivery is Delivery.AT_MOST_ONCE
        if is_internal(self.name):
            self.admission = KEEPER_ONLY
        elif self.admission is None or self.admission.access != spec.access:
            self.admission = admission(spec.access)

    def refusal(self, client: Client) -> AccessDenied | None:
        """Why this client may neither put in nor take out, as the document is now; or None."""
        if self.admission is None or not (problem := self.admission.problem(client)):
            return None
        return AccessDenied(f"queue {self.name!r} is not for this client: {problem}")

    def admit(self, client: Client) -> Queue:
        """Itself. Raises AccessDenied."""
        if (refusal := self.refusal(client)) is not None:
            raise refusal
        return self
