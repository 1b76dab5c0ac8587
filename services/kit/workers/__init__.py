"""Several processes serve one edge on shared ports: they are supervised here, and their metrics joined.

It knows an edge as `services.kit.edge` describes it, and no protocol.
"""

from services.kit.workers.run import complain, main
from services.kit.workers.workers import Supervisor, longest_drain_s

__all__ = [
    "Supervisor",
    "complain",
    "longest_drain_s",
    "main",
]
