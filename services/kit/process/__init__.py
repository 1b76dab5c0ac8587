"""One process of an edge: its start, its health pages, what it answers about itself, and its drain.

It knows an edge as `services.kit.edge` describes it, and no protocol.
"""

from services.kit.process.health import Answers, HealthServer
from services.kit.process.http_handler import HttpHandler, without_versions
from services.kit.process.process import EXIT_UNUSABLE, EdgeProcess, run_process

__all__ = [
    "EXIT_UNUSABLE",
    "Answers",
    "EdgeProcess",
    "HealthServer",
    "HttpHandler",
    "run_process",
    "without_versions",
]
