"""Hosts that are no nodes, and disturb nodes that build their ring."""

from __future__ import annotations

from tests.ring.simulation.link import Link, Wire
from tests.ring.simulation.ours import PORT
from tests.ring.simulation.world import World

AGAIN_S = 1.0


class Mute:
    """A host that connects to a node's tail and sends nothing until closed; with `again`, it connects once more."""

    name = b"mute:1"

    def __init__(self, world: World, node: int, at: float, again: bool) -> None:
        self._world = world
        self._node = world.plan.names[node]
        self._again = again
        world.clock.at(at, self._dial)

    def _dial(self) -> None:
        self._world.network.dial(self, self._node, PORT)  # type: ignore[arg-type]  it hears no beacons

    def dialled(self, link: Link) -> None:
        """Note that the connection is open."""

    def not_dialled(self, link: Link) -> None:
        self._try_again()

    def answered(self, link: Link) -> None:
        raise AssertionError("an answer to nothing")

    def outbound_gone(self, link: Link, why: str) -> None:
        self._try_again()

    def came(self, link: Link, message: Wire) -> None:
        raise AssertionError("it is never connected to")

    def inbound_gone(self, link: Link, why: str) -> None:
        raise AssertionError("it is never connected to")

    def _try_again(self) -> None:
        if self._again:
            self._world.clock.after(AGAIN_S, self._dial)
