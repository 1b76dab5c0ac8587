"""Spans of messages: which are traced, what records carry, what is reported when messages are put, leased and settled.

It reports to a recorder that its process hands in, and knows neither connections nor OpenTelemetry.
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
