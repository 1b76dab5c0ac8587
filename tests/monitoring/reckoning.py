"""Results of panels' queries on known series: promtool's unit tests, without processes.

The series detect careless queries: gauges had another value before, counters rise more slowly than before and were
reset a moment ago. A query for a mean, the wrong range or a plain difference has a different result.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.monitoring.boards import asks, every_board, everything, filled
from tools.kubernetes.programs import find

MINUTES = 120  # number of samples before the query
NOW_S = MINUTES * 60
LATE = 10  # of samples with the current rate: longer than the range of rates
IN_AN_HOUR = 60 * (2 * (60 - LATE) + LATE)  # earlier increase of a counter that rises by 1 a second now


@dataclass(frozen=True)
class Known:
    """A query by `Ask.called`, its exact result, and the selected variables."""

    called: str
    found: Mapping[str, float]  # by labels
    chosen: Mapping[str, str] = field(default_factory=dict)


def check(folder: Path, series: Mapping[str, str], known: Iterable[Known]) -> None:
    """series: their values in promtool's notation, one every minute."""
    exprs = {ask.called: (ask.expr, everything(board)) for board in every_board() for ask in asks(board)}
    tests: list[dict[str, Any]] = []
    for each in known:
        expr, anything = exprs[each.called]
        samples = [{"labels": f"{{{labels}}}", "value": value} for labels, value in each.found.items()]
        wanted = filled(expr, {"__rate_interval": "5m", **anything, **each.chosen})
        tests.append({"expr": f"round({wanted}, 0.001)", "eval_time": f"{NOW_S}s", "exp_samples": samples})
    one = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": tests,
    }
    (folder / "test.yaml").write_text(yaml.safe_dump({"tests": [one]}))
    words = [find("promtool"), "test", "rules", "test.yaml"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def stands(value: float) -> str:
    """Return a gauge that has just reached this value, with higher and lower values before."""
    return f"{3 * value}x{MINUTES - 4} {value / 2} {value}x2"


def rises(a_second: float, before: float | None = None) -> str:
    """Return a counter with this recent rate, none in the last minute, and twice the rate before, unless given.

    Its process restarted a moment ago.
    """
    now, then = 60 * a_second, 60 * (2 * a_second if before is None else before)
    first = MINUTES - LATE
    return f"0+{then}x{first} {then * first + now}+{now}x{LATE - 4} {now} {3 * now} {3 * now}"
