"""Layout of a ring run: five nodes on five machines, two stores, the clients' ways and the targets of faults."""

from __future__ import annotations

from dataclasses import dataclass

from tests.faults.episodes import Kind, Scene, Step

GROUP = 7
# node: store; nodes 1 to 3 use store 0, nodes 4 and 5 store 1
NODES = {f"node {number}": number // 4 for number in range(1, 6)}
STORES = 2
SILENCE_S = 3.0  # the link of a predecessor that is silent for longer is closed
SCENE = Scene(
    stores=tuple(f"store {store}" for store in range(STORES)),
    edges=tuple(NODES),
    cables=tuple(f"cable {name[5:]}" for name in NODES),
    pair=("node 4", "node 5"),
    silence_s=SILENCE_S,
)
SURE = (  # faults that every run includes, for any seed
    Step("node 2", Kind.KILL, 0.0, 0.5),
    Step("store 0", Kind.KILL, 0.0, 1.5),
    Step("cable 3", Kind.PULL, 0.0, SILENCE_S),
)
OUTBOX_STORE, INBOX_STORE = 1, 0  # messages in the outbox go around the ring to the inbox
OUTBOX, INBOX = "outbox", "inbox"


@dataclass(frozen=True, slots=True)
class Way:
    """A way from the client port of a node to a queue of a store."""

    node: str
    store: int
    is_pulled: bool  # other clients pull from the queue during the run

    @property
    def queue(self) -> str:
        return f"{'pulled' if self.is_pulled else 'kept'} {self.store}"

    @property
    def goes_round(self) -> bool:
        """Return whether requests go around the ring, because only other nodes use this store."""
        return NODES[self.node] != self.store

    def __str__(self) -> str:
        return f"{self.node} > {self.queue}"


WAYS = tuple(Way(node, store, is_pulled=False) for node in NODES for store in range(STORES)) + tuple(
    Way(node, store, is_pulled=True) for node in ("node 1", "node 5") for store in range(STORES)
)
PULLS = tuple(Way(node, store, is_pulled=True) for node in ("node 2", "node 4") for store in range(STORES))
QUEUES = {way.queue: way.store for way in WAYS}
