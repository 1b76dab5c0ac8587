"""Alerts outside Kubernetes are the same as the chart's, with jobs and instances."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from services.kit.config.settings import GlobalSettings
from services.kit.edge import edges
from tests.chart.alert_cases import CASES, Series
from tests.chart.rules import ROOT, RULES, alerts, check, promtool, rules
from tests.chart.trying import document as cases_document
from tools.outside_rules import LEFT_OUT, document

EXAMPLES = ROOT / "docs" / "examples" / "prometheus"
FILE = EXAMPLES / "alerts.yaml"
OWN: dict[str, Any] = alerts(yaml.safe_load(FILE.read_text())["groups"])


def test_file_matches_the_charts_rules() -> None:
    """Check that the file is up to date with the chart's rules; otherwise run `make runbooks`."""
    assert FILE.read_text() == document(RULES.read_text())


def test_each_alert_is_included_or_explained() -> None:
    groups = {group["name"]: group["rules"] for group in yaml.safe_load(RULES.read_text())["groups"]}
    without = {rule["alert"] for name in groups.keys() & LEFT_OUT.keys() for rule in groups[name]}
    assert LEFT_OUT.keys() - groups.keys() <= rules().keys()
    assert OWN.keys() == rules().keys() - LEFT_OUT.keys() - without
    assert len(OWN) > 20


def test_page_lists_excluded_alerts() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    assert [name for name in LEFT_OUT if name.startswith("Penstock") and name not in page] == []


def test_file_has_no_kubernetes_terms() -> None:
    given = str([(rule["expr"], rule["annotations"]) for rule in OWN.values()])
    assert re.findall(r"\bnamespace\b|\bpods?\b|\bPods?\b|\bService\b|\brelease\b", given) == []


def test_promtool_accepts_both_files(tmp_path: Path) -> None:
    for name in ("alerts.yaml", "prometheus.yaml"):
        (tmp_path / name).write_text((EXAMPLES / name).read_text())
    assert f"{len(OWN)} rules found" in promtool("check", "config", str(tmp_path / "prometheus.yaml"))


def outside(series: Series) -> Series:
    """Return series as scraped without Kubernetes."""
    jobs = {
        name.replace('namespace="shop"', 'job="penstock-shop"'): values for name, values in series.items()
    }
    return {re.sub(r"\bpod=", "instance=", name): values for name, values in jobs.items()}


def test_each_alert_fires_for_its_own_job_only(tmp_path: Path) -> None:
    """Check that an alert fires for its own job only, unless it fires for missing series."""

    def tried(alert: str) -> dict[str, Any]:
        cases = [replace(case, sounds=outside(case.sounds)) for case in CASES if case.alert == alert]
        absent = "absent(" in OWN[alert]["expr"]
        return cases_document(
            OWN[alert], cases, lambda case: outside(case.silent) if absent else of_others(case.sounds)
        )

    check(tmp_path, [([rule], tried(alert)) for alert, rule in OWN.items()])


def of_others(series: Series) -> Series:
    return {name.replace('job="penstock-shop"', 'job="node"'): values for name, values in series.items()}


def test_example_scrapes_every_process_of_penstock_up() -> None:
    """Check that the example scrapes every process: health ports are consecutive, edges by name, then the console."""
    (job,) = yaml.safe_load((EXAMPLES / "prometheus.yaml").read_text())["scrape_configs"]
    ((targets,),) = [[config["targets"] for config in job["static_configs"]]]
    first = GlobalSettings().health.port
    assert targets == [f"127.0.0.1:{first + number}" for number in range(len(edges()) + 1)]
