"""Layout of a ring of stores, and the targets of faults."""

from __future__ import annotations

from tests.faults.episodes import Scene

STORES = 3
EDGES = {"edge 0": 0, "edge 1": 1, "edge 2": 2, "edge 0b": 0}  # edge: store
CABLES = tuple(f"cable {index}" for index in range(STORES))  # from the edges of a store to those of the next
SILENCE_S = 2.0  # a link that is silent for longer is closed
SCENE = Scene(
    stores=tuple(f"store {index}" for index in range(STORES)),
    edges=tuple(EDGES),
    cables=CABLES,
    pair=("edge 0", "edge 0b"),
    silence_s=SILENCE_S,
)
