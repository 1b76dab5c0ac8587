"""A Queue or Peer resource as its document, read by the same models as queues.yaml."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from penstock_operator.cluster.resources import SINGULAR, Key, Resource
from services.store.model import (
    API_VERSION,
    OF_A_RESOURCE,
    WATCHED,
    DeletionPolicy,
    PeerDocument,
    PeerSpec,
    QueueDocument,
    QueueSpec,
)

UNKNOWN = (
    "this operator does not know the field: leave it out; if nobody wrote it, the definitions (CRDs) are of another "
    "version than the operator: upgrade the older of them"
)
FINALIZER = f"{API_VERSION.partition('/')[0]}/store"


def owner_of(key: Key) -> str:
    """Who a queue or peer in the store belongs to: 'kubernetes shop/orders'."""
    return f"{OF_A_RESOURCE} {key.namespace}/{key.name}"


def owning_key(owner: str) -> tuple[str, str] | None:
    """('shop', 'orders'), or None for what no resource declared, or one that is gone."""
    who, _, rest = owner.partition(" ")
    namespace, slash, name = rest.partition("/")
    return (namespace, name) if who == OF_A_RESOURCE and slash else None


def queue_name(resource: Resource) -> str:
    """Of the queue in the store that this Queue declares."""
    return str(resource.spec.get("queueName") or resource.key.name)


@dataclass(frozen=True, slots=True)
class DeclaredQueue:
    """`spec` is None where `fault` says what is wrong with it."""

    resource: Resource
    name: str  # in the store
    spec: QueueSpec | None
    fault: str = ""

    @property
    def claims(self) -> list[str]:
        """What no other queue may have."""
        return [] if self.spec is None else self.spec.claims()


def read_queue(resource: Resource) -> DeclaredQueue:
    try:
        document = QueueDocument.model_validate(_document(resource), context=WATCHED)
    except ValidationError as error:
        return DeclaredQueue(resource, queue_name(resource), None, _faults(error))
    return DeclaredQueue(resource, document.name, document.queue)


def read_peer(resource: Resource) -> tuple[PeerSpec | None, str]:
    """The peer, or what is wrong with it."""
    document, fault = read(resource, PeerDocument)
    return (None if document is None else document.spec), fault


def read(resource: Resource, model: type[BaseModel]) -> tuple[Any, str]:
    """The document as this model has it, or what is wrong with it."""
    try:
        return model.model_validate(_document(resource)), ""
    except ValidationError as error:
        return None, _faults(error)


def is_removed_with_its_resource(spec: dict[str, Any]) -> bool:
    """Whether a queue may go when its resource goes, so that somebody must be there then."""
    return bool(spec.get("deletionPolicy", DeletionPolicy.RETAIN) != DeletionPolicy.RETAIN)


def is_held(resource: Resource) -> bool:
    """Whether it goes no sooner than its queue was seen to, if its policy asks for that."""
    return FINALIZER in resource.finalizers or not is_removed_with_its_resource(dict(resource.spec))


def _document(resource: Resource) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": SINGULAR[resource.key.kind],
        "metadata": {"name": resource.key.name},
        "spec": dict(resource.spec),
    }


def _faults(error: ValidationError) -> str:
    faults = (
        f"{'.'.join(map(str, each['loc']))}: {UNKNOWN if each['type'] == 'extra_forbidden' else each['msg']}"
        for each in error.errors()
    )
    return "; ".join(fault.replace("Value error, ", "").removeprefix(": ") for fault in faults)
