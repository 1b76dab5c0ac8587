"""Parse Queue, Peer and Redrive resources with the models that also read queues.yaml."""

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
    "unknown field: remove it; if you did not write it, the CRDs and the operator are of different versions: upgrade "
    "the older one"
)
FINALIZER = f"{API_VERSION.partition('/')[0]}/store"


def owner_of(key: Key) -> str:
    """Return the owner to record in the store: 'kubernetes shop/orders'."""
    return f"{OF_A_RESOURCE} {key.namespace}/{key.name}"


def owning_key(owner: str) -> tuple[str, str] | None:
    """Return ('shop', 'orders') for an owner in Kubernetes; None for others and for released ones."""
    owner_kind, _, rest = owner.partition(" ")
    namespace, slash, name = rest.partition("/")
    return (namespace, name) if owner_kind == OF_A_RESOURCE and slash else None


def queue_name(resource: Resource) -> str:
    """Return the name of the queue in the store that this Queue declares."""
    return str(resource.spec.get("queueName") or resource.key.name)


@dataclass(frozen=True, slots=True)
class DeclaredQueue:
    """A parsed Queue. `spec` is None if it is invalid; `fault` says why."""

    resource: Resource
    name: str  # in the store
    spec: QueueSpec | None
    fault: str = ""

    @property
    def claims(self) -> list[str]:
        """Return the numbers and targets that no other queue may have."""
        return [] if self.spec is None else self.spec.claims()


def read_queue(resource: Resource) -> DeclaredQueue:
    """Parse a Queue."""
    try:
        document = QueueDocument.model_validate(_document(resource), context=WATCHED)
    except ValidationError as error:
        return DeclaredQueue(resource, queue_name(resource), None, _faults(error))
    return DeclaredQueue(resource, document.name, document.queue)


def read_peer(resource: Resource) -> tuple[PeerSpec | None, str]:
    """Parse a Peer; return it, or None and the fault."""
    document, fault = read(resource, PeerDocument)
    return (None if document is None else document.spec), fault


def read(resource: Resource, model: type[BaseModel]) -> tuple[Any, str]:
    """Parse a resource with this model; return it, or None and the fault."""
    try:
        return model.model_validate(_document(resource)), ""
    except ValidationError as error:
        return None, _faults(error)


def is_removed_with_its_resource(spec: dict[str, Any]) -> bool:
    """Return whether the policy may delete the queue with its resource, which requires the finalizer."""
    return bool(spec.get("deletionPolicy", DeletionPolicy.RETAIN) != DeletionPolicy.RETAIN)


def is_held(resource: Resource) -> bool:
    """Return whether the resource has the finalizer, or does not need it."""
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
