"""One rule, by promtool, on what it sounds for and on what it does not."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.chart.alert_cases import HARMLESS, MINUTES, Case, Series
from tools.kubernetes.programs import find


def run(folder: Path, rule: dict[str, Any], cases: Iterable[Case], harmless: Series = HARMLESS) -> str:
    """Return '' if the rule does as the cases have it, else what promtool says."""
    (said,) = run_each(folder, [rule], list(cases), harmless)
    return said


def run_each(
    folder: Path, rules: Sequence[dict[str, Any]], cases: Sequence[Case], harmless: Series = HARMLESS
) -> list[str]:
    """Return the same of each rule, all of them tried by one promtool: its start takes longer than its tests."""
    folder.mkdir(exist_ok=True)
    for number, rule in enumerate(rules):
        groups = [{"name": "own", "rules": [rule]}]
        (folder / f"rules{number}.yaml").write_text(yaml.safe_dump({"groups": groups}))
        tests = [test for case in cases for test in both_tests(rule, case, harmless)]
        test = {"rule_files": [f"rules{number}.yaml"], "tests": tests}
        (folder / f"test{number}.yaml").write_text(yaml.safe_dump(test))
    words = [find("promtool"), "test", "rules", *(f"test{number}.yaml" for number in range(len(rules)))]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120)
    told = {part.split()[0]: "SUCCESS" in part for part in done.stdout.split("Unit Testing:")[1:]}
    said = done.stdout + done.stderr
    assert len(told) == len(rules), said
    return ["" if told[f"test{number}.yaml"] else said for number in range(len(rules))]


def both_tests(rule: dict[str, Any], case: Case, harmless: Series) -> list[dict[str, Any]]:
    firing = f'count(ALERTS{{alertname="{case.alert}",alertstate="firing"}})'
    sounds = {"expr": firing, "exp_samples": [{"labels": "{}", "value": 1}]}
    value = {
        "expr": f"round(sum({rule['expr']}), 0.01)",
        "exp_samples": [{"labels": "{}", "value": case.value}],
    }
    asked = [sounds] if case.value is None else [sounds, value]
    return [
        one_test(f"{case.called} sounds", case.sounds, asked),
        one_test(
            f"{case.called} is silent", {**harmless, **case.silent}, [{"expr": firing, "exp_samples": []}]
        ),
    ]


def one_test(name: str, series: Any, asked: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": name,
        "interval": "1m",
        "input_series": [{"series": each, "values": values} for each, values in series.items()],
        "promql_expr_test": [{**each, "eval_time": f"{MINUTES}m"} for each in asked],
    }
