"""Tracing of messages: sampling, trace contexts in records, and spans of publishes, deliveries and settlements.

Spans go to the recorder of the process; its connections and OpenTelemetry are not used here.
"""

from services.store.tracing.spans import LOG, Observer, Value, readable
from services.store.tracing.trace_propagation import Leaving, TracePropagation

__all__ = [
    "LOG",
    "Leaving",
    "Observer",
    "TracePropagation",
    "Value",
    "readable",
]
