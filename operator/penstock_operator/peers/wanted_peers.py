"""Which peers the Peer resources declare, and what is to be said to each of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock_operator.cluster.resources import Resource
from penstock_operator.documents.conditions import Ready, Reason, Verdict
from penstock_operator.documents.declared import owner_of, read_peer
from services.store.model import PeerSpec, Protocol


@dataclass(frozen=True, slots=True)
class Wanted:
    """A peer as it should be in the store."""

    spec: PeerSpec
    owner: str


def declared_peers(resources: Iterable[Resource]) -> tuple[list[tuple[Resource, Verdict]], dict[str, Wanted]]:
    """A verdict for each resource, and the peers by name: of several of one name the oldest has it."""
    verdicts: list[tuple[Resource, Verdict]] = []
    having: dict[str, Resource] = {}
    wanted: dict[str, Wanted] = {}
    for resource in sorted(resources, key=lambda each: each.age_rank):
        spec, fault = read_peer(resource)
        verdict = _verdict(resource, fault, having.get(resource.key.name))
        if verdict.ready is Ready.YES and spec is not None:
            having[resource.key.name] = resource
            wanted[resource.key.name] = Wanted(spec, owner_of(resource.key))
        verdicts.append((resource, verdict))
    return verdicts, wanted


def _verdict(resource: Resource, fault: str, older: Resource | None) -> Verdict:
    """older: has its name."""
    if resource.deleting:
        text = f"it is declared no more; the resource is held by {', '.join(resource.finalizers)}"
        return Verdict(Ready.NO, Reason.REMOVED, text)
    if fault:
        return Verdict(Ready.NO, Reason.INVALID, fault)
    if older is not None:
        where = older.key.namespace
        text = f"an older Peer of this name is in namespace {where!r}: rename one of them, or delete one"
        return Verdict(Ready.NO, Reason.CONFLICT, text)
    return Verdict(Ready.YES, Reason.DECLARED, "as it is declared")


def unfit(odd: Mapping[str, str | None], protocol: Protocol) -> str:
    """What a Queue is told that leads to these by this protocol, '' = nothing. None: nobody has the name."""
    missing = [name for name, spoken in odd.items() if spoken is None]
    says = [f"no Peer is named {', '.join(missing)}: apply one"] if missing else []
    for name, spoken in odd.items():
        if spoken is not None:
            says.append(
                f"Peer {name} speaks {spoken}, and the Queue leads there by {protocol}: name one that does"
            )
    return "; ".join([*says, "messages wait until then"]) if says else ""
