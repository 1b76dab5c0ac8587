"""Find loops in the mappings (docs/sysv.md 4.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NewType

from services.store import Queue
from services.store.model import INBOX, Protocol, number_name
from services.sysv.settings import Direction, Format, format_key
from services.sysv.settings import Mapping as SysvMapping

Node = NewType("Node", str)  # a Penstock queue, or a local one
Steps = dict[Node, list[Node]]


def find_loop(mappings: Mapping[str, SysvMapping], queues: Iterable[Queue]) -> str | None:
    """Return a loop such as 'queue a -> local queue 0x00000007 -> queue a', or None. `queues`: all of the store."""
    steps: Steps = {}
    known = list(queues)
    for mapping in mappings.values():
        for start, goal in _steps(mapping, known):
            steps.setdefault(start, []).append(goal)
    for start, goal in _ways_back(known):
        steps.setdefault(start, []).append(goal)
    for start in steps:
        if way := _way(steps, start, start):
            return " -> ".join([start, *way])
    return None


def _steps(mapping: SysvMapping, known: list[Queue]) -> Iterable[tuple[Node, Node]]:
    local = Node(f"local queue {format_key(mapping.key)}")
    if mapping.direction is Direction.IN:
        yield _queue(mapping.queue), local
    elif mapping.format is Format.RAW:
        yield local, _queue(mapping.queue)
    else:  # a T_MSG may have any key
        for queue in known:
            if _sends_by_cast(queue) or queue.spec.bindings.rqp_cast.key is not None:
                yield local, _queue(queue.name)


def _ways_back(known: list[Queue]) -> Iterable[tuple[Node, Node]]:
    """Yield steps from a remote queue to the local queue with its number: a peer may send messages back.

    Another node of this store in the same ring may do so too (ring.md 5.5).
    """
    numbers = {number: queue for queue in known for number in queue.spec.numbers()}
    for queue in known:
        remote = queue.spec.remote
        if remote is not None and (goal := numbers.get(number_name(remote.protocol, remote.number))):
            yield _queue(queue.name), _queue(goal.name)
        group = queue.spec.bindings.ring.outbox
        if group is not None and (goal := numbers.get(number_name(INBOX, group))):
            yield _queue(queue.name), _queue(goal.name)


def _sends_by_cast(queue: Queue) -> bool:
    return queue.spec.remote is not None and queue.spec.remote.protocol is Protocol.CAST


def _queue(name: str) -> Node:
    return Node(f"queue {name}")


def _way(steps: Steps, start: Node, goal: Node) -> list[Node] | None:
    """Return the nodes after `start` up to `goal`, None if it is not reachable."""
    ways: list[tuple[Node, list[Node]]] = [(start, [])]
    seen: set[Node] = set()
    while ways:
        node, way = ways.pop()
        for step in steps.get(node, ()):
            if step == goal:
                return [*way, step]
            if step not in seen:
                seen.add(step)
                ways.append((step, [*way, step]))
    return None
