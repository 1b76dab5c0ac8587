"""Child processes and their supervisor; several workers that serve one edge on shared ports, with their metrics joined.

It knows an edge as `services.kit.edge` describes it, and no protocol.
"""

from services.kit.process.supervisor import Child, Policy, Role, Supervisor, forked, watched_signals
from services.kit.workers.run import complain, main
from services.kit.workers.workers import longest_drain_s, run_edge_processes

__all__ = [
    "Child",
    "Policy",
    "Role",
    "Supervisor",
    "complain",
    "forked",
    "longest_drain_s",
    "main",
    "run_edge_processes",
    "watched_signals",
]
