"""Child processes and their supervisor; several workers that serve one edge on shared ports, with their metrics joined.

It knows an edge as `services.kit.edge` describes it, and no protocol.
"""

from services.kit.process.supervisor import Child, Policy, Role, Supervisor, forked, watched_signals
from services.kit.workers.run import main, print_settings_error
from services.kit.workers.workers import max_drain_s, run_edge_processes

__all__ = [
    "Child",
    "Policy",
    "Role",
    "Supervisor",
    "forked",
    "main",
    "max_drain_s",
    "print_settings_error",
    "run_edge_processes",
    "watched_signals",
]
