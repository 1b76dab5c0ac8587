"""Declare prometheus_client's metrics of Python's garbage collector."""

from __future__ import annotations

from services.kit.measure import Label, counter

WHO = "every process except edges with several workers"

GENERATION = Label("generation", "3")

COLLECTED = counter("python_gc_objects_collected_total", "Objects collected during gc", GENERATION)
UNCOLLECTABLE = counter(
    "python_gc_objects_uncollectable_total", "Uncollectable objects found during GC", GENERATION
)
COLLECTIONS = counter(
    "python_gc_collections_total", "Number of times this generation was collected", GENERATION
)
