"""NetworkPolicies: docs/chart.md, "What edges need of the network"."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from services.store.redis.url import StoreUrl
from tests.chart.chart import NAME, Rendered, nested, render
from tests.chart.switches import NODES
from tests.tmq.process import ROOT


def _egress(rendered: Rendered, edge: str = "tmq") -> Any:
    return rendered[f"NetworkPolicy/{NAME}-{edge}"]["spec"]["egress"]


def test_store_policy_uses_the_pod_port() -> None:
    """Check the pod's port in the store's policy, as policies apply after the Service has routed the packet."""
    rendered = render(nested("redis.service.port", 6380))
    (listening,) = rendered.container(f"StatefulSet/{NAME}-redis")["ports"]
    (rule,) = [rule for rule in _egress(rendered) if "redis" in str(rule)]
    assert rule["ports"] == [{"port": listening["containerPort"]}]


@pytest.mark.parametrize(
    ("url", "admin_url", "ports"),
    [
        ("redis://edge:s@store.example:7000/0", "", {7000}),
        ("redis://store.example:7000", "rediss://admin:1:2@store.example:7001/0?a=b:9", {7000, 7001}),
        ("redis+cluster://edge:s@c-0:7100,c-1:7101", "", {7100, 7101}),
        ("redis://edge:s@[fd00::6]:7000/0", "", {7000}),
        ("redis://edge:s@store.example/0", "", set()),
    ],
)
def test_external_store_policy_uses_the_ports_of_urls(url: str, admin_url: str, ports: set[int]) -> None:
    outside = {"redis": {"enabled": False}, "externalRedis": {"url": url, "adminUrl": admin_url}}
    _, rule = [rule for rule in _egress(render(outside)) if "to" not in rule][:2]
    assert {port["port"] for port in rule["ports"]} == {6379, 26379} | ports


def test_store_ports_of_the_page_reach_sentinels_and_servers() -> None:
    """Check that the ports in the docs reach Sentinels and servers: a list replaces the default (docs/chart.md)."""
    section = (ROOT / "docs" / "chart.md").read_text().partition("\n## The store\n")[2].partition("\n## ")[0]
    values = yaml.safe_load((ROOT / "docs" / "examples" / "chart" / "store.yaml").read_text())
    open_ports = {port["port"] for rule in _egress(render(values)) for port in rule["ports"]}
    urls = re.findall(r"redis(?:s|\+sentinel)://[^'` ]+@[^'` ]+", section)
    dialled = {address.port for url in urls for address in StoreUrl.parse(url).addresses}
    assert {6380, 26379} <= dialled
    assert dialled - {6379} <= open_ports
    assert "rediss+sentinel://" in section


def test_redis_from_is_applied() -> None:
    (rule,) = render(NODES)[f"NetworkPolicy/{NAME}-redis"]["spec"]["ingress"]
    own, *others = rule["from"]
    assert "podSelector" in own
    assert others == NODES["networkPolicy"]["redisFrom"]


def _ports(service: Any) -> list[str]:
    return [port["name"] for port in service["spec"]["ports"]]


@pytest.mark.parametrize("outside", ["NodePort", "LoadBalancer"])
def test_external_services_exclude_trusted_ports(outside: str) -> None:
    """Check that external Services exclude ports whose clients are trusted; peers in the cluster use another one."""
    rendered = render(nested("edges.ring.service.type", outside))
    assert _ports(rendered[f"Service/{NAME}-ring"]) == ["ring-clients"]
    inside = rendered[f"Service/{NAME}-ring-inside"]
    assert _ports(inside) == ["ring", "ring-beacon"]
    assert inside["spec"]["clusterIP"] == "None"
    assert inside["metadata"]["labels"]["penstock.dev/discover"] == "true"


def test_trusted_port_can_be_exposed_explicitly() -> None:
    values = {"type": "LoadBalancer"}, {"text-link": {"enabled": True, "expose": True}}
    rendered = render({"edges": {"pubsub": {"service": values[0], "ports": values[1]}}})
    assert _ports(rendered[f"Service/{NAME}-pubsub"]) == ["text", "text-link"]
    assert f"Service/{NAME}-pubsub-inside" not in rendered


def test_cluster_service_has_all_ports() -> None:
    rendered = render({})
    assert _ports(rendered[f"Service/{NAME}-ring"]) == ["ring", "ring-beacon", "ring-clients", "health"]
    assert not [place for place in rendered.objects if place.endswith("-inside")]
