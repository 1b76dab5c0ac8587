"""One process of an edge: its start, its health pages, and its drain.

It knows an edge as `services.kit.edge` describes it, and no protocol.
"""

from services.kit.process.health import HealthServer, HealthSources
from services.kit.process.http_handler import HttpHandler, remove_server_header
from services.kit.process.process import EXIT_UNUSABLE, EdgeProcess, run_process

__all__ = [
    "EXIT_UNUSABLE",
    "EdgeProcess",
    "HealthServer",
    "HealthSources",
    "HttpHandler",
    "remove_server_header",
    "run_process",
]
