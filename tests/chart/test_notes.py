"""NOTES.txt as helm renders it: each hint appears only with its options.

Hints that need an API server are in test_installed.py: several releases, and the console's token.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.chart.chart import NAME, Values, nested, notes, together
from tests.chart.console import CONSOLE

ALERTS = nested("monitoring.prometheusRule.enabled", True)
RUNBOOKS = nested("monitoring.prometheusRule.runbookUrl", "https://docs.example.org/runbooks")
OUTSIDE = {
    "redis": {"enabled": False},
    "externalRedis": {"url": "redis://edge:e@store:6379/0", "edgeUser": "till"},
}
IN_A_SECRET = {
    "redis": {"enabled": False},
    "externalRedis": {"existingSecret": "theirs", "edgeUser": "till"},
}
CLOSED = nested("networkPolicy.clientsFrom", [{"podSelector": {}}])
OTHERS_CLOSED = nested("edges.tmq.networkPolicy.from", [{"podSelector": {}}])
UNPOLICED = together(CLOSED, nested("networkPolicy.enabled", False))
LOOPBACK = together(CONSOLE, nested("console.bindAddress", "127.0.0.1"))
IN_A_VOLUME = nested("analytics.enabled", True)
BUCKET = together(IN_A_VOLUME, nested("analytics.output.url", "s3a://bucket/folder"))


@dataclass(frozen=True)
class Hint:
    """`words` appear with `on`, and not with `off`."""

    words: str
    on: Values
    off: Values


HINTS = (
    Hint("Alerts have no links to runbooks: set", ALERTS, together(ALERTS, RUNBOOKS)),
    Hint("set monitoring.prometheusRule.runbookUrl", ALERTS, {}),
    Hint(f"tmq-document {NAME}-tmq.shop:6161", {}, nested("edges.tmq.enabled", False)),
    Hint(f"tmq-document {NAME}-tmq.shop:7", nested("edges.tmq.ports.tmq-document.servicePort", 7), {}),
    Hint("kind: Queue metadata: name: orders", {}, nested("operator.enabled", False)),
    Hint("The operator is off: set up the store", nested("operator.enabled", False), {}),
    Hint("Test the release: send a message through every edge:", {}, nested("helmTest.enabled", False)),
    Hint("helm test demo --namespace shop --logs", {}, nested("helmTest.enabled", False)),
    Hint("through every edge, and query the console:", CONSOLE, LOOPBACK),
    Hint("Unsent messages of ring nodes wait", {}, nested("edges.ring.enabled", False)),
    Hint(
        f"shop statefulset/{NAME}-ring -- penstock queue list 'ring/*'",
        {},
        nested("edges.ring.ports.ring.enabled", False),
    ),
    Hint("The store is the chart's own: one pod", {}, OUTSIDE),
    Hint("Its data is lost with its pod", nested("redis.persistence.enabled", False), {}),
    Hint("Its data is lost with its pod", nested("redis.persistence.enabled", False), OUTSIDE),
    Hint("the output of: penstock store rights --user till", OUTSIDE, IN_A_SECRET),
    Hint("exec penstock store rights --apply --password-file - --user till'", IN_A_SECRET, OUTSIDE),
    Hint("get secret theirs --namespace shop --output", IN_A_SECRET, OUTSIDE),
    Hint("Every pod that reaches these ports may use every queue", {}, together(CLOSED, OTHERS_CLOSED)),
    Hint("Every pod that reaches these ports may use every queue", OTHERS_CLOSED, CLOSED),
    Hint("set networkPolicy.clientsFrom and networkPolicy.enabled", UNPOLICED, {}),
    Hint("Only one analytics job at a time may write to analytics.output.url", BUCKET, IN_A_VOLUME),
    Hint("WARNING: operator.acceptLoss is set.", nested("operator.acceptLoss", True), {}),
    Hint("The console, a page and an HTTP API:", CONSOLE, {}),
    Hint(f"port-forward --namespace shop service/{NAME}-console 9180:80 ", CONSOLE, LOOPBACK),
    Hint(f"port-forward --namespace shop deployment/{NAME}-console 9180:8080 ", LOOPBACK, CONSOLE),
    Hint(
        "https://localhost:9180/", together(CONSOLE, nested("console.tls.secretName", "certificate")), CONSOLE
    ),
    Hint(
        "http://queues.example.org/",
        together(CONSOLE, nested("console.ingress", {"enabled": True, "hosts": ["queues.example.org"]})),
        together(CONSOLE, nested("console.ingress", {"enabled": False, "hosts": ["queues.example.org"]})),
    ),
)


@pytest.mark.parametrize("hint", HINTS, ids=lambda hint: hint.words)
def test_hints_appear_when_they_apply(hint: Hint) -> None:
    assert hint.words in notes(hint.on)
    assert hint.words not in notes(hint.off)


def test_notes_without_warnings() -> None:
    text = notes({})
    assert text.startswith("Penstock ")
    assert "is installed as demo in shop." in text
    assert "WARNING" not in text


ANALYTICS = together(ALERTS, nested("analytics.enabled", True))
STALE = "fires when a report is older than"


@pytest.mark.parametrize(
    ("schedule", "hours"),
    [
        ("*/5 ?   * * ?", 1),
        ("7 */5 * * *", 5),  # 4 hours from 20 to 0
        ("7 5/9 * * *", 9),  # 5, 14, 23
        ("7 3 * * *", 24),
        ("7 23,1,9-17/4 * * *", 8),  # 23, 1, 9, 13, 17
        ("7 * * * MON-FRI", 24),
        ("@weekly", 168),
        ("@every 1h30m1800s", 2),
    ],
)
def test_schedule_longer_than_the_limit_is_warned(schedule: str, hours: float) -> None:
    seconds = int(hours * 3600)

    def notes_with(stale: int) -> str:
        values = nested("monitoring.prometheusRule.analyticsStaleSeconds", stale)
        return notes(together(ANALYTICS, nested("analytics.schedule", schedule), values))

    assert f"has {seconds} s or more between two runs" in notes_with(seconds)
    assert STALE not in notes_with(seconds + 1)


def test_no_warning_for_a_disabled_alert() -> None:
    daily = together(ANALYTICS, nested("analytics.schedule", "@daily"))
    assert STALE in notes(daily)
    for off in (
        nested("analytics.suspend", True),
        nested("analytics.enabled", False),
        nested("monitoring.prometheusRule.enabled", False),
        nested("monitoring.prometheusRule.disabled", ["PenstockAnalyticsStale"]),
    ):
        assert STALE not in notes(together(daily, off))


def test_example_queue_is_in_a_watched_namespace() -> None:
    for watch, where in (
        ({"namespaces": ["east", "west"]}, "east"),
        ({"namespaces": ["east", "shop"]}, "shop"),
        ({"allNamespaces": True}, "shop"),
    ):
        text = notes(nested("operator.watch", watch))
        assert f"kubectl apply --namespace {where} --filename" in text
        assert f"kubectl wait --namespace {where} --for" in text
