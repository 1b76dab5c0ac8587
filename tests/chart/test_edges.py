"""What the chart makes of an edge's values, as the edge itself reads it: docs/chart.md, "Edges"."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from services.kit.edge import edges
from services.kit.settings import GlobalSettings, load
from services.store.url import StoreUrl
from tests.chart.chart import NAME, Rendered, nested, render, together
from tests.chart.switches import OPERATOR, SWITCHES, TMQ, secret_of
from tests.kubernetes.cluster import DEFINITIONS

PORTS = {
    "tmq": {"tmq-document": 6161, "tmq-reference": 6162, "health": 9161},
    "pubsub": {"text": 7171, "health": 9161},
    "rqp": {"rqp-mca": 11311, "rqp-cast": 11312, "health": 9161},
    "ring": {"ring-clients": 9000, "ring": 8085, "ring-beacon": 8083, "health": 9161},
}


def workload(edge: str) -> str:
    return f"{'StatefulSet' if edge == 'ring' else 'Deployment'}/{NAME}-{edge}"


def as_the_edge_reads_it(
    rendered: Rendered, edge: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[GlobalSettings, Any]:
    """The file, and over it the pod's environment as Kubernetes would fill it in."""
    pod = {
        "POD_NAME": f"{NAME}-{edge}-0",
        "POD_NAMESPACE": "shop",
        "POD_IP": "10.1.2.3",
        "STORE_PASSWORD": "s",
    }
    for name, value in rendered.env(workload(edge)).items():
        if value and name not in pod:
            for known, its in pod.items():
                value = value.replace(f"$({known})", its)
            pod[name] = value
    path = tmp_path / "penstock.yaml"
    path.write_text(rendered[f"ConfigMap/{NAME}-{edge}"]["data"]["penstock.yaml"])
    for name, value in {**pod, "PENSTOCK_CONFIG": str(path)}.items():
        monkeypatch.setenv(name, value)
    settings = load()
    return settings, settings.edge(edges()[edge])


@pytest.mark.parametrize("edge", PORTS)
def test_an_edge_listens_where_its_service_leads(
    edge: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered = render()
    settings, own = as_the_edge_reads_it(rendered, edge, tmp_path, monkeypatch)
    service = rendered[f"Service/{NAME}-{edge}"]["spec"]
    assert {port["name"]: port["port"] for port in service["ports"]} == PORTS[edge]
    container = {port["name"]: port["containerPort"] for port in rendered.container(workload(edge))["ports"]}
    assert container == PORTS[edge]
    listening = {listener.port for listener in own.listeners.values()}
    udp = {port["port"] for port in service["ports"] if port.get("protocol") == "UDP"}
    assert listening | udp | {9161} == set(PORTS[edge].values())
    assert {listener.host for listener in own.listeners.values()} == {"0.0.0.0"}
    assert (settings.health.host, settings.health.port) == ("0.0.0.0", 9161)
    assert settings.store_url == f"redis://edge:s@{NAME}-redis:6379/0"


def test_every_edge_of_the_product_is_in_the_chart() -> None:
    assert set(PORTS) == edges().keys() == render_edges()


def render_edges() -> set[str]:
    return {each["metadata"]["name"].removeprefix(f"{NAME}-") for each in render().of("PodDisruptionBudget")}


def test_a_ring_node_has_a_name_that_stays_and_looks_for_the_others_by_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/operations.md, "Rings"."""
    rendered = render()
    _, own = as_the_edge_reads_it(rendered, "ring", tmp_path, monkeypatch)
    peers = f"{NAME}-ring-peers.shop.svc.cluster.local"
    assert own.node.name == f"{NAME}-ring-0.{peers}:8085"
    assert own.node.beacon_targets == (peers,)
    assert (own.node.broadcast, own.node.beacon_host) == ((), "0.0.0.0")
    service = rendered[f"Service/{NAME}-ring-peers"]["spec"]
    assert (service["clusterIP"], service["publishNotReadyAddresses"]) == ("None", True)
    assert rendered[f"StatefulSet/{NAME}-ring"]["spec"]["serviceName"] == f"{NAME}-ring-peers"


def test_rqp_cast_is_on_every_address_of_the_pod_and_its_ports_are_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/rqp.md, "Who may reach it"."""
    rendered = render()
    _, own = as_the_edge_reads_it(rendered, "rqp", tmp_path, monkeypatch)
    assert own.cast.host == "0.0.0.0"
    ingress = rendered[f"NetworkPolicy/{NAME}-rqp"]["spec"]["ingress"]
    opened = [port for rule in ingress for port in rule["ports"]]
    assert {"port": 11312, "protocol": "UDP"} in opened
    ranges = [text.split("-") for text in (own.cast.receiver_ports, own.cast.sender_ports)]
    for port in (own.cast.findreceiver_port, *(int(end) for ends in ranges for end in ends)):
        assert any(
            each["port"] <= port <= each.get("endPort", each["port"]) and each.get("protocol") == "TCP"
            for each in opened
        ), port


@pytest.mark.parametrize("switch", SWITCHES, ids=lambda switch: switch.path)
def test_whatever_is_switched_the_files_can_be_used(
    switch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for values in (switch.values_on, switch.values_off):
        rendered = render(switch.beside, values)
        for edge in PORTS:
            if f"ConfigMap/{NAME}-{edge}" in rendered:
                with monkeypatch.context() as environment:
                    as_the_edge_reads_it(rendered, edge, tmp_path, environment)


def test_settings_go_through_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers stay whole numbers, whatever templates make of them; false is not nothing."""
    values = {
        "workers": 3,
        "max_message_bytes": 12345678,
        "create": {"allowed": False},
        "listeners": {"document": {"code5_mqid": "select", "allow": ["10.0.0.0/8"]}},
    }
    rendered = render(
        nested("edges.tmq.settings", values), nested("edges.tmq.limits", {"max_input_bytes": 1 << 31})
    )
    settings, own = as_the_edge_reads_it(rendered, "tmq", tmp_path, monkeypatch)
    assert (own.workers, own.max_message_bytes, own.create.allowed) == (3, 12345678, False)
    assert own.listeners["document"].code5_mqid == "select"
    assert [str(network) for network in own.listeners["document"].allow] == ["10.0.0.0/8"]
    assert settings.limits.max_input_bytes == 1 << 31


def test_a_fifth_edge_is_one_block_of_values() -> None:
    telex = {
        "settings": {"lines": 2},
        "ports": {"telex": {"port": 4711, "listener": "wire"}},
        "podLabels": {"team": "a"},
    }
    rendered = render({"edges": {"telex": telex}})
    for kind in ("Deployment", "Service", "ConfigMap", "PodDisruptionBudget", "NetworkPolicy"):
        assert f"{kind}/{NAME}-telex" in rendered
    assert rendered.container(f"Deployment/{NAME}-telex")["args"] == ["serve", "telex"]
    assert rendered.file("telex")["edges"] == {
        "telex": {"lines": 2, "listeners": {"wire": {"host": "0.0.0.0", "port": 4711}}}
    }
    assert "TEST_TELEX" not in rendered.env(f"Pod/{NAME}-test")


def test_what_all_edges_have_is_said_once_and_each_may_say_otherwise() -> None:
    rendered = render(
        {"edgeDefaults": {"replicas": 5, "pdb": {"enabled": False}}},
        {"edges": {"tmq": {"replicas": 3, "pdb": {"enabled": True}}}},
    )
    found = {each["metadata"]["name"]: each["spec"]["replicas"] for each in rendered.of("Deployment")}
    assert (found[f"{NAME}-tmq"], found[f"{NAME}-rqp"]) == (3, 5)
    assert [each["metadata"]["name"] for each in rendered.of("PodDisruptionBudget")] == [f"{NAME}-tmq"]


def test_a_pod_has_the_time_that_its_drain_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/settings.md, drain: a pod's grace period must be longer than the three together, and the sleep before."""
    drain = {"preStopSleepSeconds": 7, "graceSeconds": 1.5, "spreadSeconds": 3, "timeoutSeconds": 60}
    rendered = render(nested("edges.tmq.drain", drain))
    settings, _ = as_the_edge_reads_it(rendered, "tmq", tmp_path, monkeypatch)
    told = settings.drain
    assert (told.grace_s, told.spread_s, told.timeout_s) == (1.5, 3, 60)
    assert rendered.pod(TMQ)["terminationGracePeriodSeconds"] == 72 + 10
    assert rendered.container(TMQ)["lifecycle"] == {"preStop": {"sleep": {"seconds": 7}}}
    exactly = render(nested("edges.tmq.drain", drain), nested("edges.tmq.terminationGracePeriodSeconds", 72))
    assert exactly.pod(TMQ)["terminationGracePeriodSeconds"] == 72
    at_once = render(nested("edges.tmq.drain.preStopSleepSeconds", 0))
    assert "lifecycle" not in at_once.container(TMQ)


def test_liveness_never_depends_on_the_store() -> None:
    for edge in PORTS:
        container = render().container(workload(edge))
        assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
        assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
        assert container["startupProbe"]["httpGet"]["path"] == "/healthz"


def test_scaled_edges_say_no_replicas() -> None:
    by_cpu = render(nested("edges.tmq.autoscaling", {"type": "hpa", "maxReplicas": 7}))
    assert "replicas" not in by_cpu[TMQ]["spec"]
    scaler = by_cpu[f"HorizontalPodAutoscaler/{NAME}-tmq"]["spec"]
    assert scaler["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"{NAME}-tmq"}
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (2, 7)
    keda = {"type": "keda", "keda": {"serverAddress": "http://p:9090"}}
    scaled = render(nested("edges.tmq.autoscaling", keda))[f"ScaledObject/{NAME}-tmq"]["spec"]
    (trigger,) = scaled["triggers"]
    assert trigger["type"] == "prometheus"
    assert trigger["metadata"]["query"] == 'sum(penstock_connections{edge="tmq",namespace="shop"})'


def test_a_change_of_settings_or_passwords_restarts_pods_and_nothing_else_does() -> None:
    def annotations(*values: Any) -> Any:
        return render(nested("redis.auth", {"adminPassword": "a", "edgePassword": "b"}), *values)[TMQ][
            "spec"
        ]["template"]["metadata"]["annotations"]

    before = annotations()
    assert annotations(nested("edges.tmq.replicas", 5)) == before
    assert annotations(nested("edges.tmq.settings.workers", 2)) != before
    assert annotations(nested("redis.auth.edgePassword", "c")) != before
    assert annotations(nested("log.level", "DEBUG")) != before


def test_images_come_from_one_registry_and_labels_are_on_everything() -> None:
    values = {
        "global": {"imageRegistry": "registry.example/mirror/", "imagePullSecrets": ["pull"]},
        "commonLabels": {"team": "queues"},
        "commonAnnotations": {"note": "1"},
        "console": {"enabled": True},
        "analytics": {"enabled": True},
    }
    rendered = render(values)
    for place, pod in rendered.pods():
        for container in pod["spec"]["containers"]:
            assert container["image"].startswith("registry.example/mirror/"), place
        assert pod["spec"]["imagePullSecrets"] == [{"name": "pull"}], place
    for place, each in rendered.objects.items():
        assert each["metadata"]["labels"]["team"] == "queues", place
        assert each["metadata"]["annotations"]["note"] == "1", place


def test_names() -> None:
    assert render({"fullnameOverride": "queues"}).container("Deployment/queues-tmq")
    assert render({"nameOverride": "demo"}).container("Deployment/demo-tmq")
    long = render({"fullnameOverride": "a" * 40})
    assert all(len(each["metadata"]["name"]) <= 63 for each in long.objects.values())


def test_objects_of_the_users_own_are_templates() -> None:
    text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ .Release.Name }}-text'}}"
    as_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-map"}}
    rendered = render({"extraObjects": [text, as_map]})
    assert "ConfigMap/demo-text" in rendered
    assert "ConfigMap/demo-map" in rendered


@pytest.mark.parametrize(
    ("url", "mode"),
    [
        ("rediss://edge:s@store.example:6380/0?ssl_ca_certs=/etc/penstock/store-tls/ca.crt", "single"),
        ("redis+sentinel://edge:s@s-0:26379,s-1:26379/mymaster", "sentinel"),
        ("rediss+cluster://edge:s@c-0:6379,c-1:6379", "cluster"),
    ],
)
def test_a_store_outside(url: str, mode: str) -> None:
    """docs/operations.md, "A store of your own"."""
    admin = url.replace("edge:s", "admin:t")
    rendered = render({"redis": {"enabled": False}, "externalRedis": {"url": url, "adminUrl": admin}})
    secret = rendered[f"Secret/{NAME}-store"]["stringData"]
    assert secret == {"edge-url": url, "admin-url": admin}
    assert StoreUrl.parse(secret["edge-url"]).mode == mode
    egress = rendered[f"NetworkPolicy/{NAME}-tmq"]["spec"]["egress"]
    assert {"ports": [{"port": 6379}, {"port": 26379}]} in egress
    secrets = {place: secret_of(rendered, place, "REDIS_URL") for place in (TMQ, OPERATOR)}
    assert secrets[TMQ] == {"name": f"{NAME}-store", "key": "edge-url"}
    assert secrets[OPERATOR] == {"name": f"{NAME}-store", "key": "admin-url"}


def test_certificates_are_for_the_listeners_that_are_named() -> None:
    values = {"secretName": "c", "listeners": ["document"]}
    listeners = render(nested("edges.tmq.tls", values)).file("tmq")["edges"]["tmq"]["listeners"]
    assert "tls" in listeners["document"]
    assert "tls" not in listeners["reference"]


def test_policies_let_in_whom_they_should_and_the_test() -> None:
    clients = [{"namespaceSelector": {"matchLabels": {"a": "b"}}}]
    rendered = render(
        nested("networkPolicy.clientsFrom", clients), nested("edges.pubsub.ports.text-link.enabled", True)
    )
    first, peers, health = rendered[f"NetworkPolicy/{NAME}-pubsub"]["spec"]["ingress"]
    assert first["ports"] == [{"port": 7171, "protocol": "TCP"}]
    assert first["from"][0] == clients[0]
    assert first["from"][1]["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "test"
    assert peers["ports"] == [{"port": 7172, "protocol": "TCP"}]
    assert [who["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for who in peers["from"]] == [
        "pubsub"
    ]
    assert health["ports"] == [{"port": 9161}]
    assert "from" not in health


def test_definitions_are_as_they_were_written() -> None:
    rendered = render()
    for path in DEFINITIONS.glob("*.yaml"):
        written = yaml.safe_load(path.read_text())
        found = rendered[f"CustomResourceDefinition/{written['metadata']['name']}"]
        assert found["spec"] == written["spec"]


def test_values_of_two_depths_are_laid_over_each_other() -> None:
    """As the tests put values together, so does the template: what is false or empty counts."""
    over = together({"edgeDefaults": {"peersService": True}}, {"edges": {"tmq": {"peersService": False}}})
    rendered = render(over)
    assert f"Service/{NAME}-pubsub-peers" in rendered
    assert f"Service/{NAME}-tmq-peers" not in rendered
