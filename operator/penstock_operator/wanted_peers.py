"""Which peers the Peer resources declare, and what is to be said to each of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock_operator.conditions import Ready, Reason, Verdict
from penstock_operator.declared import owner_of, read_peer
from penstock_operator.resources import Resource
from services.store.peer import PeerSpec


@dataclass(frozen=True, slots=True)
class Wanted:
    """A peer as it should be in the store."""

    spec: PeerSpec
    owner: str


def declared_peers(resources: Iterable[Resource]) -> tuple[list[tuple[Resource, Verdict]], dict[str, Wanted]]:
    """A verdict for each resource, and the peers by name: of several of one name the oldest has it."""
    verdicts: list[tuple[Resource, Verdict]] = []
    wanted: dict[str, Wanted] = {}
    for resource in sorted(resources, key=lambda each: each.age_rank):
        spec, fault = read_peer(resource)
        name = resource.key.name
        if resource.deleting:
            continue
        if spec is None:
            verdicts.append((resource, Verdict(Ready.NO, Reason.INVALID, fault)))
        elif name in wanted:
            text = f"an older Peer of this name is in namespace {wanted[name].owner.partition(' ')[2]}: rename one"
            verdicts.append((resource, Verdict(Ready.NO, Reason.CONFLICT, text)))
        else:
            wanted[name] = Wanted(spec, owner_of(resource.key))
            verdicts.append((resource, Verdict(Ready.YES, Reason.DECLARED, "as it is declared")))
    return verdicts, wanted
