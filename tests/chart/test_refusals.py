"""Invalid values are rejected with an error that names the fix: refusals.yaml."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from tests.chart.chart import CHART, Refused, Values, refusal, render, together

REFUSALS = yaml.safe_load(Path(__file__).with_name("refusals.yaml").read_text())
OF_KINDS = REFUSALS.pop("kinds")
CONTRADICTIONS = [each for group in REFUSALS.values() for each in group.items()]
SCHEDULES = (
    *("7 * * * *", "*/15 0-6,22,23 1 JAN-mar ?", "59 23 31 12 sun", "00\t09  * * 1-5/2"),
    *("@hourly", "@every 1h30m"),
)
NO_SCHEDULES = (
    *("", "sometimes", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *"),
    *("* * * 13 *", "* * * * 7", "*/0 * * * *", "1- * * * *", ",1 * * * *", "@often", "@every day"),
    "TZ=UTC 7 * * * *",
)


@pytest.mark.parametrize(("words", "values"), CONTRADICTIONS, ids=[words for words, _ in CONTRADICTIONS])
def test_contradicting_values_are_refused(words: str, values: Values) -> None:
    assert words in refusal(values)


def test_values_of_wrong_types_are_reported_together() -> None:
    message = refusal(together(*OF_KINDS.values()))
    assert [words for words in OF_KINDS if words not in message] == []


def test_schedules_must_be_cron() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    pattern = re.compile(schema["properties"]["analytics"]["properties"]["schedule"]["pattern"])
    assert [text for text in SCHEDULES if not pattern.search(text)] == []
    assert [text for text in NO_SCHEDULES if pattern.search(text)] == []


def test_name_beginning_with_a_digit_needs_a_newer_cluster() -> None:
    """Check that older clusters are refused: they would reject the Services after other objects were created."""
    with pytest.raises(Refused, match="the name 7up is not valid for a Service"):
        render({"fullnameOverride": "7up"}, flags=("--kube-version", "1.34.0"))
    assert render({"fullnameOverride": "7up"}, flags=("--kube-version", "1.36.0")).of("Service")
