"""Each alert has a runbook that matches its rule and whose commands exist."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.chart.chart import NAME, nested, render
from tests.chart.rules import ON, ROOT, RULE, RULES, alerts, rules
from tools.runbooks import impact, pages

RUNBOOKS = ROOT / "docs" / "runbooks"


@pytest.fixture(scope="module")
def own() -> dict[str, Any]:
    return rules()


def test_each_alert_has_a_runbook_and_each_runbook_an_alert(own: dict[str, Any]) -> None:
    assert {path.stem for path in RUNBOOKS.glob("*.md")} == {*own, "index"}
    where = "https://example.org/runbooks/"
    rule = {"enabled": True, "runbookUrl": where, "oldestMessageSeconds": 3600}
    values = {**ON, **nested("monitoring.prometheusRule", rule)}
    for name, rule in alerts(render(values)[f"PrometheusRule/{NAME}"]["spec"]["groups"]).items():
        assert rule["annotations"]["runbook_url"] == f"{where}{name}.md"
        page = (RUNBOOKS / f"{name}.md").read_text()
        assert page.startswith(f"# {name}\n")
        assert "## Diagnosis\n" in page
        assert "## Mitigation\n" in page


@pytest.mark.parametrize(
    ("text", "led"),
    [
        ("https://example.org/runbooks", "https://example.org/runbooks/PenstockEdgeFull.md"),
        ("https://example.org/runbooks/%s/", "https://example.org/runbooks/PenstockEdgeFull/"),
        ("https://example.org/wiki?page=%s", "https://example.org/wiki?page=PenstockEdgeFull"),
    ],
)
def test_alerts_link_to_runbooks(text: str, led: str) -> None:
    """Check that alerts link to their runbooks, also on the site, whose pages have no `.md`."""
    rendered = render(RULE, nested("monitoring.prometheusRule.runbookUrl", text))
    found = alerts(rendered[f"PrometheusRule/{NAME}"]["spec"]["groups"])
    assert found["PenstockEdgeFull"]["annotations"]["runbook_url"] == led


def test_runbooks_match_the_rules(own: dict[str, Any]) -> None:
    """Check expression, severity, duration and the index; if outdated, run `make runbooks`."""
    found = dict(pages(RULES, RUNBOOKS))
    assert {file.stem for file in found} == {*own, "index"}
    for file, should in found.items():
        assert file.read_text() == should, file.name


def test_runbooks_are_complete(own: dict[str, Any]) -> None:
    """Check that runbooks state the impact, that commands have a namespace, and that other alerts are links."""
    for name in own:
        text = (RUNBOOKS / f"{name}.md").read_text()
        assert impact(text), name
        for command in re.findall(r"kubectl (?:logs|get pods|exec|describe pod)[^`\n]*", text):
            assert "-n NAMESPACE" in command, (name, command)
        plain = re.sub(r"\[\w+\]\(\w+\.md\)", "", text)
        assert [word for word in re.findall(r"Penstock[A-Z]\w+", plain) if word in own] == [name], name
