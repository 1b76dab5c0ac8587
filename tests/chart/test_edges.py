"""The settings that the chart creates for an edge, as the edge reads them: docs/chart.md, "Edges"."""

from __future__ import annotations

import pytest
import yaml

from services.kit.edge import edges
from services.ring.node.identity import identify
from tests.chart.chart import CHART, NAME, nested, render, workload
from tests.chart.conftest import Read
from tests.chart.switches import OPERATOR, TMQ, renderings

PORTS = {
    "tmq": {"tmq-document": 6161, "tmq-reference": 6162, "health": 9161},
    "pubsub": {"text": 7171, "health": 9161},
    "rqp": {"rqp-mca": 11311, "rqp-cast": 11312, "health": 9161},
    "ring": {"ring-clients": 9000, "ring": 8085, "ring-beacon": 8083, "health": 9161},
}


@pytest.mark.parametrize("edge", PORTS)
def test_edge_listens_on_the_ports_of_its_service(edge: str, read: Read) -> None:
    rendered = render()
    settings, own = read(rendered, edge)
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


def test_chart_has_every_edge() -> None:
    budgets = render().of("PodDisruptionBudget")
    assert set(PORTS) == edges().keys()
    assert edges().keys() == {each["metadata"]["name"].removeprefix(f"{NAME}-") for each in budgets}


def test_ring_node_has_a_stable_name_and_finds_others(read: Read) -> None:
    """Check the stable name and the peers of a ring node (docs/operations.md, "Rings")."""
    rendered = render()
    _, own = read(rendered, "ring")
    peers = f"{NAME}-ring-peers.shop.svc.cluster.local"
    assert (own.node.name, own.node.advertise) == ("", f"{NAME}-ring-0.{peers}")
    assert own.node.beacon_targets == (peers,)
    assert (own.node.broadcast, own.node.beacon_host) == ((), "0.0.0.0")
    service = rendered[f"Service/{NAME}-ring-peers"]["spec"]
    assert (service["clusterIP"], service["publishNotReadyAddresses"]) == ("None", True)
    assert rendered[f"StatefulSet/{NAME}-ring"]["spec"]["serviceName"] == f"{NAME}-ring-peers"


def test_rqp_cast_binds_every_address_and_its_ports_are_open(read: Read) -> None:
    """Check that RQP/cast binds every address and that its ports are open (docs/rqp-cast.md, "Network access")."""
    rendered = render()
    _, own = read(rendered, "rqp")
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


def test_generated_files_are_valid_for_all_switches(read: Read) -> None:
    """Check each distinct file and environment once."""
    tried = set()
    for rendered in renderings():
        for edge in PORTS:
            if (place := f"ConfigMap/{NAME}-{edge}") in rendered:
                its = (edge, rendered[place]["data"]["penstock.yaml"], str(rendered.env(workload(edge))))
                if its not in tried:
                    read(rendered, edge)
                tried.add(its)
    assert len(tried) > 20


def test_settings_are_passed_unchanged(read: Read) -> None:
    """Check that settings pass unchanged: whole numbers stay whole in templates, and false is not empty."""
    values = {
        "workers": 3,
        "max_message_bytes": 12345678,
        "create": {"allowed": False},
        "listeners": {"document": {"code5_mqid": "select", "allow": ["10.0.0.0/8"]}},
    }
    rendered = render(
        nested("edges.tmq.settings", values), nested("edges.tmq.limits", {"max_input_bytes": 1 << 31})
    )
    settings, own = read(rendered, "tmq")
    assert (own.workers, own.max_message_bytes, own.create.allowed) == (3, 12345678, False)
    assert own.listeners["document"].code5_mqid == "select"
    assert [str(network) for network in own.listeners["document"].allow] == ["10.0.0.0/8"]
    assert settings.limits.max_input_bytes == 1 << 31


def test_fifth_edge_is_one_block_of_values() -> None:
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


def test_edges_override_edge_defaults() -> None:
    rendered = render(
        {"edgeDefaults": {"replicas": 5, "pdb": {"enabled": False}, "peersService": True}},
        {"edges": {"tmq": {"replicas": 3, "pdb": {"enabled": True}, "peersService": False}}},
    )
    found = {each["metadata"]["name"]: each["spec"]["replicas"] for each in rendered.of("Deployment")}
    assert (found[f"{NAME}-tmq"], found[f"{NAME}-rqp"]) == (3, 5)
    assert [each["metadata"]["name"] for each in rendered.of("PodDisruptionBudget")] == [f"{NAME}-tmq"]
    assert f"Service/{NAME}-pubsub-peers" in rendered
    assert f"Service/{NAME}-tmq-peers" not in rendered


def test_grace_period_covers_the_drain(read: Read) -> None:
    """Check that the grace period exceeds the three times of the drain plus the preStop sleep (docs/settings.md)."""
    drain = {"preStopSleepSeconds": 7, "graceSeconds": 1.5, "spreadSeconds": 3, "timeoutSeconds": 60}
    rendered = render(nested("edges.tmq.drain", drain))
    settings, _ = read(rendered, "tmq")
    parsed = settings.drain
    assert (parsed.grace_s, parsed.spread_s, parsed.timeout_s) == (1.5, 3, 60)
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


def test_certificates_apply_to_listed_listeners() -> None:
    values = {"secretName": "c", "listeners": ["document"]}
    listeners = render(nested("edges.tmq.tls", values)).file("tmq")["edges"]["tmq"]["listeners"]
    assert "tls" in listeners["document"]
    assert "tls" not in listeners["reference"]


def test_ports_without_a_listener_follow_the_settings(read: Read) -> None:
    ports = {"rqp": {"rqp-cast": {"port": 12000}}, "ring": {"ring-beacon": {"port": 8183}}}
    rendered = render({"edges": {edge: {"ports": its} for edge, its in ports.items()}})
    _, rqp = read(rendered, "rqp")
    assert (rqp.cast.request_port, rqp.cast.receives) == (12000, True)
    _, ring = read(rendered, "ring")
    assert ring.node.beacon_port == 8183
    closed = render(nested("edges.rqp.ports.rqp-cast.enabled", False))
    _, rqp = read(closed, "rqp")
    assert not rqp.cast.receives


def test_ring_node_name_has_its_port(read: Read) -> None:
    """Check that a node's name is host:port with the TCP port (protos/ring.md 1.2)."""
    rendered = render(nested("edges.ring.ports.ring.port", 8086))
    _, own = read(rendered, "ring")
    node = identify(own.node, own.listeners["ring"].model_copy(update={"host": "127.0.0.1"}))
    assert node.name.decode() == f"{NAME}-ring-0.{NAME}-ring-peers.shop.svc.cluster.local:8086"
    egress = rendered[f"NetworkPolicy/{NAME}-ring"]["spec"]["egress"]
    (own_pods,) = [rule for rule in egress if "ring" in str(rule.get("to"))]
    assert {port["port"] for port in own_pods["ports"]} == {8086, 8083}


def test_ring_without_a_node_has_clients_only(read: Read) -> None:
    rendered = render(nested("edges.ring.ports.ring.enabled", False))
    _, own = read(rendered, "ring")
    assert set(own.listeners) == {"clients"}
    ports = {port["name"] for port in rendered.container(workload("ring"))["ports"]}
    assert ports == {"ring-clients", "health"}


def test_bind_address_applies_everywhere(read: Read) -> None:
    rendered = render(nested("edgeDefaults.bindAddress", "::"))
    _, own = read(rendered, "ring")
    assert own.node.beacon_host == "::"
    assert rendered.env(OPERATOR)["PENSTOCK_OPERATOR_HEALTH_HOST"] == "::"
    assert {listener.host for listener in own.listeners.values()} == {"::"}


def test_nodes_with_tls_dial_with_tls(read: Read) -> None:
    """Check that nodes with TLS dial with TLS (docs/chart.md, "TLS")."""
    clients = render(nested("edges.ring.tls", {"secretName": "c", "listeners": ["clients"]}))
    _, own = read(clients, "ring")
    assert (own.listeners["clients"].tls is None, own.listeners["ring"].tls is None) == (False, True)
    dial = nested("edges.ring.settings.node.dial.tls", {"ca": "/etc/penstock/tls/ca.crt"})
    both = render(nested("edges.ring.tls.secretName", "c"), dial)
    _, own = read(both, "ring")
    assert None not in (own.listeners["clients"].tls, own.listeners["ring"].tls, own.node.dial.tls)


def test_default_ports_of_edges_are_known() -> None:
    known = yaml.safe_load((CHART / "files" / "ports.yaml").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())["edges"]
    assert known == {edge: list(its["ports"]) for edge, its in values.items()}


def test_fractions_and_numbers_with_set(read: Read) -> None:
    """Check `--set`, with which helm makes 0.5 a text and 500 a number."""
    options = ("edges.tmq.drain.spreadSeconds=0.5", "edges.rqp.autoscaling.type=keda")
    keda = ("serverAddress=http://p", "threshold=5000000", "activationThreshold=20")
    flags = [*options, *(f"edges.rqp.autoscaling.keda.{each}" for each in keda)]
    rendered = render(flags=tuple(word for flag in flags for word in ("--set", flag)))
    settings, _ = read(rendered, "tmq")
    assert settings.drain.spread_s == 0.5
    assert rendered.pod(TMQ)["terminationGracePeriodSeconds"] == 36 + 10
    (trigger,) = rendered[f"ScaledObject/{NAME}-rqp"]["spec"]["triggers"]
    assert (trigger["metadata"]["threshold"], trigger["metadata"]["activationThreshold"]) == ("5000000", "20")


def test_topology_spread_is_applied() -> None:
    own = {"topologyKey": "zone", "maxSkew": 2, "labelSelector": {"matchLabels": {"app": "mine"}}}
    spread = [own, {"topologyKey": "host", "maxSkew": 1}]
    first, second = render(nested("edges.tmq.topologySpread", spread)).pod(TMQ)["topologySpreadConstraints"]
    assert first == own
    assert second["labelSelector"]["matchLabels"]["app.kubernetes.io/component"] == "tmq"


def test_stateful_set_uses_supported_fields_of_a_strategy() -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": 0}}
    rendered = render(nested("edgeDefaults.strategy", rolling))
    assert rendered[f"Deployment/{NAME}-tmq"]["spec"]["strategy"] == rolling
    assert rendered[f"StatefulSet/{NAME}-ring"]["spec"]["updateStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": 0},
    }
    rendered = render(nested("edgeDefaults.strategy", {"type": "Recreate"}))
    assert "updateStrategy" not in rendered[f"StatefulSet/{NAME}-ring"]["spec"]
