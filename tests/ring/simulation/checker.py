"""Check a world: its rings, leaders, deliveries, and messages that still circulate."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ring.simulation.originals import Original
from tests.ring.simulation.ours import Ours
from tests.ring.simulation.world import Life, World


def stranded(world: World) -> set[bytes]:
    """Return originals in rings of their own without a leader.

    They hear no other node, and none of their rules ends that.
    """
    return {life.name for life in world.lives.values() if _is_stranded(life)}


def _is_stranded(life: Life) -> bool:
    ring = around(life)
    is_closed = bool(ring) and successor(ring[-1]) is life
    return is_closed and all(each.is_original and not each.is_leader for each in ring)


def around(life: Life) -> list[Life]:
    """Return `life` and its successors, up to the last or the first repeated one."""
    ring: list[Life] = []
    following: Life | None = life
    while following is not None and following not in ring:
        ring.append(following)
        following = successor(following)
    return ring


def wrong_ring(lives: list[Life]) -> str:
    """Return '' if all nodes are one ring; else a description."""
    if not lives:
        return "no node leads a ring"
    first = lives[0]
    ring = around(first)
    following = successor(ring[-1])
    if following is None:
        return f"{ring[-1].name.decode()} has no successor"
    if following is not first:
        return f"{first.name.decode()} is beside the ring"
    if len(ring) != len(lives):
        return f"a ring of {len(ring)}, but {len(lives)} are alive"
    return ""


def successor(life: Life) -> Life | None:
    """Return the node at the other end, if it has this one as its predecessor."""
    link = life.successor
    if link is None or not (link.head_is_open and link.tail_is_open) or link.tail is None:
        return None
    tail = link.tail
    assert isinstance(tail, Ours | Original)
    return tail if tail.predecessor == link.number else None


def wrong_leader(lives: list[Life]) -> str:
    """Return '' if one node leads and all nodes know which; else a description."""
    leaders = [life.name for life in lives if life.is_leader]
    if len(leaders) != 1:
        return f"{len(leaders)} leaders: {b' '.join(leaders).decode()}"
    for life in lives:
        if life.leader != leaders[0]:
            return (
                f"{life.name.decode()} takes {life.leader.decode()} for the leader, not {leaders[0].decode()}"
            )
    return ""


def circling(world: World) -> str:
    """Return '' if no USER is under way in any living node that ours reach; else a description."""
    beside = stranded(world)
    for life in world.lives.values():
        if life.name in beside:
            continue
        waits = len(life.disk.outgoing) if isinstance(life, Ours) else life.users_waiting
        if waits:
            return f"{waits} USERs wait at {life.name.decode()}"
    return ""


def wrong_pushes(world: World) -> Iterator[str]:
    """Yield a description of each push that was acknowledged but not applied, or applied twice (5.4)."""
    applied = world.serving.applied
    for request_id, number in world.pushed.items():
        count = applied[request_id]
        if count > 1:
            yield f"{request_id.decode()} was applied {count} times"
        if not count and request_id in world.disks[number].acknowledged:
            yield f"{request_id.decode()} was answered by OK and not applied"


def lost_users(world: World) -> Iterator[str]:
    """Yield accepted messages that are in no inbox and in no store (ours only; ring.md 2.2, 5.5)."""
    delivered = {payload for disk in world.disks.values() for payload in disk.inbox}
    kept = {outgoing.payload for disk in world.disks.values() for outgoing in disk.outgoing}
    for number, disk in world.disks.items():
        for payload in disk.accepted:
            if payload not in delivered and payload not in kept and payload not in disk.alone:
                yield f"{payload.decode()} of {world.plan.names[number].decode()} is lost"


def undelivered(world: World, payload: bytes, sender: int) -> Iterator[str]:
    """Return the nodes that lack it (5.5): all must receive a forwarded one, else only the first of ours."""
    what = payload.decode() or "the empty USER"
    got = [number for number, disk in world.disks.items() if number in world.lives and disk.inbox[payload]]
    wanted = [number for number in world.disks if number in world.lives and number != sender]
    if not world.plan.forwards:
        if wanted and not got:
            yield f"{what} is in no inbox"
        return
    for number in wanted:
        if number not in got:
            yield f"{what} never came to {world.plan.names[number].decode()}"
