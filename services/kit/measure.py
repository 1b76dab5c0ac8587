"""Define metrics once, for the code that counts and for the table in docs/metrics.md.

Modules `measures` hold the metrics of a package as constants; the table is generated from all of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

SECONDS_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
GaugeMerge = Literal["livesum", "livemin", "livemax"]  # how the workers' values are combined
UNITS = ("seconds", "bytes", "ratio", "messages")  # suffixes of names, before `_total`
NAME = re.compile(r"[a-z]+(_[a-z]+)+")


class Kind(StrEnum):
    """A Prometheus metric type."""

    COUNTER = "counter"  # its name ends in `_total`
    GAUGE = "gauge"  # a current value
    HISTOGRAM = "histogram"  # counts by size


@dataclass(frozen=True, slots=True)
class Label:
    """A label, and the number of values it may have in one process, in words or digits."""

    name: str
    many: str


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric by its name in /metrics. `text` is its HELP; `more` is shown only in the table."""

    kind: Kind
    name: str
    text: str
    labels: Sequence[Label] = ()  # beside `edge`
    more: str = ""
    unit: str = ""  # if the name does not end with it
    merge: GaugeMerge = "livesum"
    buckets: Sequence[float] = field(default=SECONDS_BUCKETS, repr=False)

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name) or self.name.endswith("_total") != (self.kind is Kind.COUNTER):
            raise ValueError(f"{self.name} is not a valid name of a {self.kind}")

    @property
    def label_names(self) -> list[str]:
        """Return the names of the labels."""
        return [label.name for label in self.labels]

    @property
    def unit_name(self) -> str:
        """Return the unit, or '' for a plain number."""
        last = self.name.removesuffix("_total").rpartition("_")[2]
        return self.unit or (last if last in UNITS else "")

    @property
    def series_count(self) -> str:
        """Return the maximum number of series in one process, as a formula."""
        each = f"{len(self.buckets) + 3}" if self.kind is Kind.HISTOGRAM else ""
        return " x ".join(filter(None, (*(label.many for label in self.labels), each))) or "1"


def counter(name: str, text: str, *labels: Label, more: str = "", unit: str = "") -> Measure:
    """Return a counter."""
    return Measure(Kind.COUNTER, name, text, labels, more, unit)


def gauge(
    name: str, text: str, *labels: Label, more: str = "", unit: str = "", merge: GaugeMerge = "livesum"
) -> Measure:
    """Return a gauge."""
    return Measure(Kind.GAUGE, name, text, labels, more, unit, merge)


def histogram(
    name: str, text: str, *labels: Label, more: str = "", buckets: Sequence[float] = SECONDS_BUCKETS
) -> Measure:
    """Return a histogram."""
    return Measure(Kind.HISTOGRAM, name, text, labels, more, buckets=buckets)
