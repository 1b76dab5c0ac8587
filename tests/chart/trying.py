"""Tests of a rule with promtool: each case fires, and values below the threshold do not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tests.chart.alert_cases import HARMLESS, MINUTES, Case, Series


def document(
    rule: Mapping[str, Any],
    cases: Iterable[Case],
    silent: Callable[[Case], Series] = lambda case: {**HARMLESS, **case.silent},
) -> dict[str, Any]:
    """Return a test document; `silent` are series that fire no alert."""
    firing = f'count(ALERTS{{alertname="{rule["alert"]}",alertstate="firing"}})'
    tests = []
    for case in cases:
        sounds = [{"expr": firing, "exp_samples": [{"labels": "{}", "value": 1}]}]
        if case.value is not None:
            value = {"labels": "{}", "value": case.value}
            sounds.append({"expr": f"round(sum({rule['expr']}), 0.01)", "exp_samples": [value]})
        tests.append(_test(f"{case.called} sounds", case.sounds, sounds))
        tests.append(_test(f"{case.called} is silent", silent(case), [{"expr": firing, "exp_samples": []}]))
    return {"evaluation_interval": f"{_step(rule)}m", "tests": tests}


def _step(rule: Mapping[str, Any]) -> int:
    """Return the longest step in minutes that ends at the last minute and is no longer than the rule's `for`."""
    number, unit = int(rule["for"][:-1]), rule["for"][-1]
    wait = number * {"m": 1, "h": 60}[unit] or MINUTES
    return max(step for step in range(1, wait + 1) if MINUTES % step == 0)


def _test(name: str, series: Series, asked: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": name,
        "interval": "1m",
        "input_series": [{"series": each, "values": values} for each, values in series.items()],
        "promql_expr_test": [{**each, "eval_time": f"{MINUTES}m"} for each in asked],
    }
