"""Five nodes on five machines, two stores, who asks what where, and what may happen to all of it."""

from __future__ import annotations

from dataclasses import dataclass

from tests.faults.episodes import Kind, Scene, Step

GROUP = 7
NODES = {f"node {number}": number // 4 for number in range(1, 6)}  # name: its store; 1 to 3, and 4 and 5
STORES = 2
SILENCE_S = 3.0  # a predecessor that is silent for longer has lost its link
SCENE = Scene(
    stores=tuple(f"store {store}" for store in range(STORES)),
    edges=tuple(NODES),
    cables=tuple(f"cable {name[5:]}" for name in NODES),
    pair=("node 4", "node 5"),
    silence_s=SILENCE_S,
)
SURE = (  # what no run is without, whatever its seed has made up
    Step("node 2", Kind.KILL, 0.0, 0.5),
    Step("store 0", Kind.KILL, 0.0, 1.5),
    Step("cable 3", Kind.PULL, 0.0, SILENCE_S),
)
OUTBOX_STORE, INBOX_STORE = 1, 0  # what is put into the one goes around the ring into the other
OUTBOX, INBOX = "outbox", "inbox"


@dataclass(frozen=True, slots=True)
class Way:
    """From the client port of a node to a queue of a store."""

    node: str
    store: int
    is_pulled: bool  # others pull from the queue meanwhile

    @property
    def queue(self) -> str:
        return f"{'pulled' if self.is_pulled else 'kept'} {self.store}"

    @property
    def goes_round(self) -> bool:
        """The node cannot reach this store, but others of the ring can."""
        return NODES[self.node] != self.store

    def __str__(self) -> str:
        return f"{self.node} > {self.queue}"


WAYS = tuple(Way(node, store, is_pulled=False) for node in NODES for store in range(STORES)) + tuple(
    Way(node, store, is_pulled=True) for node in ("node 1", "node 5") for store in range(STORES)
)
PULLS = tuple(Way(node, store, is_pulled=True) for node in ("node 2", "node 4") for store in range(STORES))
QUEUES = {way.queue: way.store for way in WAYS}
