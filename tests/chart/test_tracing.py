"""Export of traces: docs/chart.md, "Traces"."""

from __future__ import annotations

from typing import Any

import pytest
from penstock_operator.settings import tracing_settings

from tests.chart.chart import NAME, Rendered, Values, nested, render, together
from tests.chart.conftest import Read
from tests.chart.console import CONSOLE
from tests.chart.switches import TMQ

ENDPOINT = "http://collector.observability:4318"
ON: Values = together(CONSOLE, nested("tracing.endpoint", ENDPOINT))
CONSOLE_POD = f"Deployment/{NAME}-console"
OPERATOR = f"Deployment/{NAME}-operator"


def variables(rendered: Rendered, place: str) -> dict[str, Any]:
    return {each["name"]: each for each in rendered.container(place)["env"]}


def ways(rendered: Rendered, who: str) -> list[Any]:
    """Return the allowed egress besides store and DNS."""
    found = rendered[f"NetworkPolicy/{NAME}-{who}"]["spec"]["egress"]
    return [
        rule for rule in found if rule not in render(CONSOLE)[f"NetworkPolicy/{NAME}-{who}"]["spec"]["egress"]
    ]


def test_tracing_is_off_by_default() -> None:
    rendered = render(CONSOLE)
    for who in ("tmq", "console"):
        assert "tracing" not in rendered.file(who)
    assert not [name for name in variables(rendered, OPERATOR) if "TRACING" in name]


def test_operator_gets_the_tracing_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that the operator, which reads no file, gets the tracing settings in its environment."""
    rendered = render(ON, {"tracing": {"mostFollowedPerSecond": 70}})
    for name, value in variables(rendered, OPERATOR).items():
        if "TRACING" in name:
            monkeypatch.setenv(name, value["value"])
    value = tracing_settings()
    assert (str(value.endpoint), value.most_followed_per_s) == (ENDPOINT, 70)


def test_traces_endpoint_replaces_endpoint(read: Read) -> None:
    whole = "https://traces.example:9443/otlp/mine"
    rendered = render(CONSOLE, {"tracing": {"tracesEndpoint": whole, "headersSecret": "traces"}})
    for who in ("tmq", "console"):
        tracing = read(rendered, who)[0].tracing
        assert (tracing.endpoint, tracing.traces_endpoint and tracing.traces_endpoint.reveal()) == (
            None,
            whole,
        )
        assert ways(rendered, who) == [{"ports": [{"port": 9443}]}]
    own = variables(rendered, OPERATOR)
    assert own["PENSTOCK_TRACING__TRACES_ENDPOINT"]["value"] == whole
    assert "PENSTOCK_TRACING__ENDPOINT" not in own
    for place in (TMQ, CONSOLE_POD, OPERATOR):
        assert "PENSTOCK_TRACING__HEADERS" in variables(rendered, place)


def test_edges_and_console_get_the_tracing_settings(read: Read) -> None:
    rendered = render(ON, {"tracing": {"ratio": 0.25, "mostPerSecond": 7, "mostFollowedPerSecond": 70}})
    for who in ("tmq", "ring", "rqp", "pubsub", "console"):
        tracing = read(rendered, who)[0].tracing
        found = (
            str(tracing.endpoint),
            tracing.ratio,
            tracing.most_per_s,
            tracing.most_followed_per_s,
            tracing.headers,
        )
        assert found == (ENDPOINT, 0.25, 7, 70, {}), who


def test_headers_come_from_a_secret() -> None:
    rendered = render(ON, {"tracing": {"headersSecret": "traces", "headersKey": "all"}})
    for place in (TMQ, CONSOLE_POD, OPERATOR):
        variable = variables(rendered, place)["PENSTOCK_TRACING__HEADERS"]
        assert variable["valueFrom"] == {"secretKeyRef": {"name": "traces", "key": "all"}}


@pytest.mark.parametrize(
    ("endpoint", "port"),
    [
        (ENDPOINT, 4318),
        ("http://traces.example", 80),
        ("https://traces.example/otlp", 443),
        ("https://[fd00::6]:4319", 4319),
        ("http://[fd00::6]/v1/traces", 80),
    ],
)
def test_policies_allow_the_collector(endpoint: str, port: int) -> None:
    rendered = render(CONSOLE, nested("tracing.endpoint", endpoint))
    for who in ("tmq", "console", "operator"):
        assert ways(rendered, who) == [{"ports": [{"port": port}]}]


def test_policies_allow_no_other_collector() -> None:
    there = [{"namespaceSelector": {"matchLabels": {"name": "observability"}}}]
    rendered = render(ON, {"networkPolicy": {"tracingTo": there, "tracingPorts": [14318]}})
    assert ways(rendered, "tmq") == [{"ports": [{"port": 14318}], "to": there}]
