"""The objects of the cluster that the operator reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple


class Kind(StrEnum):
    """A watched kind; the value is the plural in API paths."""

    QUEUE = "queues"
    PEER = "peers"
    REDRIVE = "redrives"
    SLICE = "endpointslices"


SINGULAR = {Kind.QUEUE: "Queue", Kind.PEER: "Peer", Kind.REDRIVE: "Redrive", Kind.SLICE: "EndpointSlice"}


class Key(NamedTuple):
    """The kind, namespace and name of an object."""

    kind: Kind
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{SINGULAR[self.kind]} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Resource:
    """An object as last reported by the API server."""

    key: Key
    uid: str
    version: int  # resourceVersion of the last change; comparable across objects
    generation: int  # increases with each change of the spec, and when deletion begins
    created: str  # RFC 3339, in whole seconds
    deleting: str  # since when, RFC 3339; '' if it is not being deleted
    spec: Mapping[str, Any]
    status: Mapping[str, Any]
    labels: Mapping[str, str]
    finalizers: tuple[str, ...] = ()

    @classmethod
    def read(cls, kind: Kind, body: Mapping[str, Any]) -> Resource:
        """Read an object of the API. The fields of an EndpointSlice become its spec."""
        metadata = body["metadata"]
        return cls(
            key=Key(kind, metadata["namespace"], metadata["name"]),
            uid=metadata["uid"],
            version=int(metadata["resourceVersion"]),
            generation=metadata.get("generation", 0),
            created=metadata["creationTimestamp"],
            deleting=metadata.get("deletionTimestamp") or "",
            spec=_slice(body) if kind is Kind.SLICE else body.get("spec") or {},
            status=body.get("status") or {},
            labels=metadata.get("labels") or {},
            finalizers=tuple(metadata.get("finalizers") or ()),
        )

    @property
    def age_rank(self) -> tuple[str, str, str]:
        """Return a sort key: oldest first, then by namespace and name."""
        return self.created, self.key.namespace, self.key.name


def is_same(one: Resource, other: Resource) -> bool:
    """Return whether both have the same uid, generation and spec; a changed CRD can change the spec alone."""
    return (one.uid, one.generation, one.spec) == (other.uid, other.generation, other.spec)


def _slice(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: body.get(name) or [] for name in ("endpoints", "ports")} | {
        "addressType": body.get("addressType")
    }
