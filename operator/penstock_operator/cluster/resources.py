"""Objects of the cluster as the operator knows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple


class Kind(StrEnum):
    """What is watched. The value is the plural in the API's paths."""

    QUEUE = "queues"
    PEER = "peers"
    REDRIVE = "redrives"
    SLICE = "endpointslices"


SINGULAR = {Kind.QUEUE: "Queue", Kind.PEER: "Peer", Kind.REDRIVE: "Redrive", Kind.SLICE: "EndpointSlice"}


class Key(NamedTuple):
    """One name at a time belongs to one object."""

    kind: Kind
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{SINGULAR[self.kind]} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Resource:
    """An object as the API server last told it."""

    key: Key
    uid: str
    version: int  # of the cluster, when it last changed: versions of Kubernetes' objects can be compared
    generation: int  # grows with each change of the spec, and when deletion begins
    created: str  # RFC 3339, in whole seconds
    deleting: str  # since when, RFC 3339; '' = it is not
    spec: Mapping[str, Any]
    status: Mapping[str, Any]
    labels: Mapping[str, str]
    finalizers: tuple[str, ...] = ()

    @classmethod
    def read(cls, kind: Kind, body: Mapping[str, Any]) -> Resource:
        """body: the whole object. What an EndpointSlice has beside its metadata is taken for its spec."""
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
        """The smallest is the oldest; of two of one second the order of their names decides."""
        return self.created, self.key.namespace, self.key.name


def is_same(one: Resource, other: Resource) -> bool:
    """Whether both are one document of one resource: by another definition the same generation may read otherwise."""
    return (one.uid, one.generation, one.spec) == (other.uid, other.generation, other.spec)


def _slice(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: body.get(name) or [] for name in ("endpoints", "ports")} | {
        "addressType": body.get("addressType")
    }
