"""Compute quantiles from histograms."""

from __future__ import annotations

from collections.abc import Sequence

from services.analytics.tables import QUANTILES
from services.store.report import Quantiles


def quantile(counts: Sequence[int], bounds: Sequence[float], share: float) -> float | None:
    """Return the value that a share does not exceed, interpolated in its bucket; the last bound for values above it."""
    rank, seen, low = sum(counts) * share, 0, 0.0
    for count, high in zip(counts, (*bounds, bounds[-1]), strict=True):
        if count and seen + count >= rank:
            return low + (high - low) * ((rank - seen) / count)
        seen, low = seen + count, float(high)
    return None


def quantiles(counts: Sequence[int], bounds: Sequence[float]) -> Quantiles:
    """Return a histogram with its quantiles."""
    shares = {name: quantile(counts, bounds, share) for name, share in QUANTILES.items()}
    return Quantiles(counts=tuple(counts), **shares)
