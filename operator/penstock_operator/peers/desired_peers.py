"""Compute the peers that Peer resources declare, and a verdict for each resource. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock_operator.cluster.resources import Resource
from penstock_operator.documents.conditions import Ready, Reason, Verdict
from penstock_operator.documents.declared import owner_of, read_peer
from services.store.model import PeerSpec, Protocol


@dataclass(frozen=True, slots=True)
class DesiredPeer:
    """The desired state of a peer in the store."""

    spec: PeerSpec
    owner: str


def declared_peers(
    resources: Iterable[Resource],
) -> tuple[list[tuple[Resource, Verdict]], dict[str, DesiredPeer]]:
    """Return a verdict for each resource, and the peers by name; the oldest resource gets the name."""
    verdicts: list[tuple[Resource, Verdict]] = []
    holders: dict[str, Resource] = {}
    desired: dict[str, DesiredPeer] = {}
    for resource in sorted(resources, key=lambda each: each.age_rank):
        spec, fault = read_peer(resource)
        verdict = _verdict(resource, fault, holders.get(resource.key.name))
        if verdict.ready is Ready.YES and spec is not None:
            holders[resource.key.name] = resource
            desired[resource.key.name] = DesiredPeer(spec, owner_of(resource.key))
        verdicts.append((resource, verdict))
    return verdicts, desired


def _verdict(resource: Resource, fault: str, older: Resource | None) -> Verdict:
    """Return the verdict for one resource. older: the resource that has its name."""
    if resource.deleting:
        text = f"being deleted; waiting for the finalizers {', '.join(resource.finalizers)}"
        return Verdict(Ready.NO, Reason.REMOVED, text)
    if fault:
        return Verdict(Ready.NO, Reason.INVALID, fault)
    if older is not None:
        where = older.key.namespace
        text = f"namespace {where!r} has an older Peer of this name: rename or delete one of them"
        return Verdict(Ready.NO, Reason.CONFLICT, text)
    return Verdict(Ready.YES, Reason.DECLARED, "declared in the store")


def unfit(odd: Mapping[str, str | None], protocol: Protocol) -> str:
    """Return what is wrong with these peers of a Queue, '' if nothing. odd: their protocols; None: no such Peer."""
    missing = [name for name, spoken in odd.items() if spoken is None]
    problems = [f"there is no Peer {', '.join(missing)}: create it"] if missing else []
    for name, spoken in odd.items():
        if spoken is not None:
            problems.append(
                f"Peer {name} uses {spoken}, not the Queue's protocol {protocol}: name another Peer"
            )
    return "; ".join([*problems, "messages wait until then"]) if problems else ""
