"""Nodes in each of their states, reached by events (ring.md 3, 4)."""

from __future__ import annotations

from collections.abc import Iterable

from protos.ring import Find, Leader, LinkBroken, Loop, Open
from protos.ring.actions import Action
from protos.ring.node import Node
from protos.ring.times import Times

GROUP = 7
LOW, ME, HIGH, HIGHER = b"a:1", b"m:1", b"x:1", b"z:1"
SERVICE = b"8085"
TIMES = Times()
SAYS_IT_IS_THERE = Leader(ME, 0)


def opened_by(node: bytes, leader: bytes, group: int = GROUP) -> Open:
    return Open(group, leader, node, b"9001")


def new() -> Node:
    """Return a new node without its store."""
    return Node(ME, GROUP, SERVICE, TIMES)


def started(now: float = 0.0) -> Node:
    """Return a node that is open and listens."""
    node = new()
    node.store_back(now)
    node.take_actions()
    return node


def tried(now: float = 0.0, link: int = 1) -> Node:
    """Return a node with a silent connection."""
    node = started(now)
    node.accepted(link, now)
    return node


def followed(now: float = 0.0, link: int = 1) -> Node:
    """Return a node that has a predecessor."""
    node = tried(now, link)
    node.heard(link, now)
    node.take_actions()
    return node


def dialling(node: Node, now: float = 0.0, to: bytes = HIGH) -> Node:
    node.beacon(opened_by(to, to), now)
    node.take_actions()
    return node


def proving(node: Node, now: float = 0.0, to: bytes = HIGH) -> Node:
    dialling(node, now, to).connected(now)
    return node


def linked(node: Node, now: float = 0.0) -> Node:
    """Return a node that has a successor, and no LOOP waiting."""
    proving(node, now).acknowledged(now)
    said(node)
    return node


def in_ring(now: float = 0.0) -> Node:
    return linked(followed(now), now)


def leading(now: float = 0.0) -> Node:
    """Return a node that has both links, and whose proposal came back."""
    node = in_ring(now)
    hear(node, Leader(ME), now)
    node.take_actions()
    return node


def hear(node: Node, loop: Loop, now: float = 0.0, link: int = 1) -> None:
    assert node.heard(link, now)
    node.received(loop, now)


def said(node: Node) -> list[Loop]:
    """Return all messages that the successor gets, in order."""
    return list(iter_said(node))


def iter_said(node: Node) -> Iterable[Loop]:
    while (loop := node.next_loop()) is not None:
        yield loop


def waiting(node: Node, now: float = 0.0, to: bytes = HIGH) -> list[Loop]:
    """Return all messages that wait for a successor: a node without one is given one."""
    return said(proving(node, now, to))[1:]


def to(kind: type, actions: list[Action]) -> list[Action]:
    return [action for action in actions if isinstance(action, kind)]


FIND_ME, FIND_OTHER = Find(GROUP, ME), Find(GROUP, HIGH)
BROKEN_ME, BROKEN_OTHER = LinkBroken(ME), LinkBroken(HIGH)
