"""Layout of an RQP run: two systems, the ways between them and the targets of faults."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from tests.faults.episodes import Kind, Scene, Step

SYSTEMS = 2
HOSTS = {  # hosts of edges; all edges of a system use the first one's as their `address` (rqp_cast.md 2.3)
    "edge 0": "127.0.0.1",
    "edge 0b": "127.0.0.3",
    "edge 1": "127.0.0.2",
    "edge 1b": "127.0.0.4",
}
EDGES = {name: int(name[5]) for name in HOSTS}  # edge: system
ADDRESSES = tuple(HOSTS[f"edge {system}"] for system in range(SYSTEMS))
SILENCE_S = 2.0  # an owner of queues that is silent for longer loses them
SCENE = Scene(
    stores=tuple(f"store {system}" for system in range(SYSTEMS)),
    edges=tuple(EDGES),
    cables=tuple(f"cable {name[5:]}" for name in EDGES),  # from the other system to this edge's RQP/MCA
    pair=("edge 0", "edge 0b"),
    silence_s=SILENCE_S,
)
# in sequence; losses of edges that are not hit themselves can then be compared with their counters
STORES_ALONE = tuple(
    Step(store, Kind.KILL, after_s, 1.5) for store, after_s in zip(SCENE.stores, (0.5, 4.0), strict=True)
)


@dataclass(frozen=True, slots=True)
class Way:
    """A transmission queue of one system and its destination queue in the other system."""

    source: int  # system
    protocol: str  # rqp-mca, rqp-cast
    is_certain: bool
    lane: int = 0  # number among parallel ways of the same kind (rqp_cast.md 4.4)

    def __str__(self) -> str:
        return f"{self.source}-{self.protocol[4:]}-{'certain' if self.is_certain else 'uncertain'}{self.lane or ''}"

    @property
    def goal(self) -> int:
        return 1 - self.source

    @property
    def number(self) -> int:
        return 7 + 10 * self.lane if self.is_certain else 8

    @property
    def is_once(self) -> bool:
        """Return whether messages arrive exactly once on this way, with any faults (rqp_cast.md 5.4)."""
        return self.is_certain and self.protocol == "rqp-cast"

    def is_on(self, target: str) -> bool:
        """Return whether a fault of the target may affect this way."""
        if target.startswith("cable "):
            return self.protocol == "rqp-mca" and int(target[6]) == self.goal
        return True


WAYS = (
    *(Way(*each) for each in product(range(SYSTEMS), ("rqp-mca", "rqp-cast"), (True, False))),
    # parallel ways, so that a kill hits several messages that must arrive exactly once
    *(Way(source, "rqp-cast", True, lane) for source, lane in product(range(SYSTEMS), (1, 2))),
)
