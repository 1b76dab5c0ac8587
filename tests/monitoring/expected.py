"""The expected results in panels.yaml, computed from processes that export every metric.

Two pods export each metric, once with all its usual labels and once more for each label with another value. The values
are a prime number of the metric times a number of the series, so another metric, another selection of series or another
aggregation has a different result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from services.kit.measure import Kind
from tests.monitoring.boards import LEGEND
from tests.monitoring.reckoning import IN_AN_HOUR, Known, rises, stands
from tools.dashboards.board import RELEASE
from tools.metrics_docs import Row, rows

EAST = f'namespace="shop",{RELEASE}="east"'
TABLE = Path(__file__).with_name("panels.yaml")
PODS = {"a": 1, "b": 100}  # and the increment between them
OF_POD = ("job", "pod", "instance")  # labels that the scrape adds
QUANTILES = {"half": 0.5, "99 of 100": 0.99}
LEAST = 3200  # larger than the sum of a metric's series, so all products differ


@dataclass(frozen=True)
class Series:
    """One series of a metric."""

    pod: str
    labels: Mapping[str, str]
    share: int  # all sums of these differ
    is_slow: bool  # of a histogram: recent samples are in the higher of two buckets

    def shown(self, names: Iterable[str]) -> str:
        """Return the prefix and these labels."""
        of_pod = {"job": "its job", "pod": self.pod, "instance": f"{self.pod}:1"}
        known = {**self.labels, **of_pod}
        return ",".join([EAST, *(f'{name}="{known[name]}"' for name in names)])


def numbers() -> dict[str, int]:
    """Return a distinct prime for each metric."""
    primes = (one for one in range(LEAST, 10 * LEAST) if all(one % other for other in range(2, 200)))
    return {row.measure.name: next(primes) for row in rows()}


def series_of(row: Row) -> Iterator[Series]:
    # a scrape has its own namespace
    own = ["exported_namespace" if name == "namespace" else name for name in row.labels]
    usual = {name: f"its {name}" for name in own}
    for at, other in enumerate(["", *own]):
        labels = {**usual, other: f"another {other}"} if other else usual
        for number, (pod, more) in enumerate(PODS.items()):
            yield Series(pod, labels, more * 2**at, is_slow=(at + number) % 2 == 1)


def all_series() -> Iterator[tuple[str, str]]:
    """Return every series with its values in promtool's notation."""
    of = numbers()
    for row in rows():
        name, number = row.measure.name, of[row.measure.name]
        for one in series_of(row):
            labels = one.shown((*one.labels, *OF_POD))
            if row.measure.kind is Kind.HISTOGRAM:
                for le, values in _classes(one, number).items():
                    yield f'{name}_bucket{{{labels},le="{le}"}}', values
            else:
                change = rises if row.measure.kind is Kind.COUNTER else stands
                yield f"{name}{{{labels}}}", change(number * one.share)


def _classes(one: Series, number: int) -> dict[str, str]:
    """Before the recent samples all of them were in the lower bucket."""
    all_of_it, quick = rises(one.share), 0 if one.is_slow else one.share
    return {
        f"{number}": rises(0),
        f"{number + 1}": rises(quick, before=2 * one.share),
        f"{number + 2}": all_of_it,
        "+Inf": all_of_it,
    }


def known() -> Iterator[Known]:
    """Return all metrics of the table."""
    of, row_of = numbers(), {row.measure.name: row for row in rows()}
    for board, titles in yaml.safe_load(TABLE.read_text()).items():
        for title, legends in titles.items():
            for legend, words in legends.items():
                how, metric, what = words.split(maxsplit=2)
                groups: dict[str, list[Series]] = {}
                for one in series_of(row_of[metric]):
                    groups.setdefault(one.shown(LEGEND.findall(legend)), []).append(one)
                found = {
                    labels: _number(how, what, of[metric], together) for labels, together in groups.items()
                }
                yield Known(f"{board}: {title}: {legend}", found)


def _number(how: str, what: str, number: int, together: Sequence[Series]) -> float:
    if what in QUANTILES:
        return round(number + _quantile(QUANTILES[what], together), 3)
    scale = IN_AN_HOUR if what == "in an hour" else 1
    return float(scale * number * _share(how, together))


def _share(how: str, together: Sequence[Series]) -> int:
    """Return the expected value of a ratio."""
    shares = [one.share for one in together]
    if how == "most":
        return max(sum(one.share for one in together if one.pod == pod) for pod in PODS)
    return {"sum": sum, "each": sum, "greatest": max, "least": min}[how](shares)


def _quantile(part: float, together: Sequence[Series]) -> float:
    """Return the quantile above the lower end of the lower bucket; each bucket is 1 wide."""
    slow = sum(one.share for one in together if one.is_slow)
    quick = sum(one.share for one in together if not one.is_slow)
    rank = part * (slow + quick)
    return rank / quick if rank <= quick else 1 + (rank - quick) / slow
