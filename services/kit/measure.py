"""What a metric is, said once: whoever counts, and the table of docs/metrics.md, read it here.

A package's module `measures` holds its own, as constants; the table is made of all that are found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

SECONDS_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
GaugeMerge = Literal["livesum", "livemin", "livemax"]  # how /metrics joins the workers' values
UNITS = ("seconds", "bytes", "ratio", "messages")  # as a name ends, before `_total`
NAME = re.compile(r"[a-z]+(_[a-z]+)+")


class Kind(StrEnum):
    """The types of Prometheus that we use."""

    COUNTER = "counter"  # only rises; its name ends in `_total`
    GAUGE = "gauge"  # as it is now
    HISTOGRAM = "histogram"  # how many were how large


@dataclass(frozen=True, slots=True)
class Label:
    """One label, and how many values it may have in a process, in words or digits."""

    name: str
    many: str


@dataclass(frozen=True, slots=True)
class Measure:
    """One metric, by the name that /metrics shows. `text` is its HELP; `more` stands in the table alone."""

    kind: Kind
    name: str
    text: str
    labels: Sequence[Label] = ()  # beside `edge`, if it has that
    more: str = ""
    unit: str = ""  # where the name does not end with it
    merge: GaugeMerge = "livesum"
    buckets: Sequence[float] = field(default=SECONDS_BUCKETS, repr=False)

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name) or self.name.endswith("_total") != (self.kind is Kind.COUNTER):
            raise ValueError(f"{self.name} is no name of a {self.kind}")

    @property
    def label_names(self) -> list[str]:
        return [label.name for label in self.labels]

    @property
    def unit_name(self) -> str:
        """'' for a plain number."""
        last = self.name.removesuffix("_total").rpartition("_")[2]
        return self.unit or (last if last in UNITS else "")

    @property
    def series_count(self) -> str:
        """How many series of one process it may be."""
        each = f"{len(self.buckets) + 3}" if self.kind is Kind.HISTOGRAM else ""
        return " x ".join(filter(None, (*(label.many for label in self.labels), each))) or "1"


def counter(name: str, text: str, *labels: Label, more: str = "", unit: str = "") -> Measure:
    return Measure(Kind.COUNTER, name, text, labels, more, unit)


def gauge(
    name: str, text: str, *labels: Label, more: str = "", unit: str = "", merge: GaugeMerge = "livesum"
) -> Measure:
    return Measure(Kind.GAUGE, name, text, labels, more, unit, merge)


def histogram(
    name: str, text: str, *labels: Label, more: str = "", buckets: Sequence[float] = SECONDS_BUCKETS
) -> Measure:
    return Measure(Kind.HISTOGRAM, name, text, labels, more, buckets=buckets)
