"""Allowed connections of a release, and no others: docs/chart.md, "What edges need of the network"."""

from __future__ import annotations

import pytest

from tests.chart.chart import NAME, Values, nested, render, together
from tests.chart.flows import COMPONENT, Flows, needs_store
from tests.chart.switches import EXECUTORS, EXTERNAL

ALL: Values = together(
    {"console": {"enabled": True}, **EXECUTORS},
    nested("edges.pubsub.ports.text-link.enabled", True),
)
EDGES = {"tmq", "pubsub", "rqp", "ring"}
CLIENTS_OF_STORE = EDGES | {"operator", "console", "analytics", "test"}
# includes clients of the API server alone: a pod uses the name https://kubernetes.default.svc
CLIENTS_OF_DNS = CLIENTS_OF_STORE | {"uninstall"}
ELSEWHERE = {"app.kubernetes.io/name": "other", COMPONENT: "else"}
NODE_DNS = {"k8s-app": "kube-dns"}
ANYWHERE = {"rqp"}  # other systems may use any port
API_PORTS = (443, 6443)


@pytest.fixture(scope="module")
def flows() -> Flows:
    return Flows(render(ALL))


def test_only_users_of_the_store_reach_it(flows: Flows) -> None:
    redis = flows.pods["redis"]
    assert set(needs_store(render(ALL))) == CLIENTS_OF_STORE
    for name in CLIENTS_OF_STORE:
        assert flows.passes(flows.pods[name], redis, 6379), name
        assert not flows.passes(flows.pods[name], redis, 6380), name
    assert not flows.passes(ELSEWHERE, redis, 6379)
    assert not flows.passes({**flows.pods["tmq"], "app.kubernetes.io/instance": "other"}, redis, 6379)
    assert not flows.passes({**flows.pods["tmq"], "app.kubernetes.io/name": "other"}, redis, 6379)
    assert not flows.passes(None, redis, 6379)


@pytest.mark.parametrize("port", [53, 5353])
def test_name_servers_are_reached_on_their_pods_ports(flows: Flows, port: int) -> None:
    """Check that name servers are reached on pod ports: OpenShift's use 5353 behind a Service on 53."""
    for name in CLIENTS_OF_DNS:
        for protocol in ("UDP", "TCP"):
            assert flows.passes(flows.pods[name], NODE_DNS, port, protocol), (name, protocol)
    assert not flows.passes(flows.pods["tmq"], NODE_DNS, 5300, "UDP")


def test_name_servers_elsewhere() -> None:
    policy = {"dnsTo": [{"podSelector": {"matchLabels": NODE_DNS}}], "dnsPorts": [5300]}
    flows = Flows(render(ALL, {"networkPolicy": policy}))
    for name in CLIENTS_OF_DNS:
        assert flows.passes(flows.pods[name], NODE_DNS, 5300, "UDP"), name
    for name in CLIENTS_OF_DNS - ANYWHERE:
        assert not flows.passes(flows.pods[name], NODE_DNS, 53, "UDP"), name
        assert not flows.passes(flows.pods[name], ELSEWHERE, 5300, "UDP"), name


@pytest.mark.parametrize("port", API_PORTS)
def test_only_pods_with_rights_reach_the_api_server(flows: Flows, port: int) -> None:
    having = {"operator", "uninstall", "analytics"}
    for name, labels in flows.pods.items():
        if name not in ANYWHERE:
            assert flows.passes(labels, None, port) == (name in having), name
    accounts = {
        pod["metadata"]["labels"][COMPONENT]
        for _, pod in render(ALL).pods()
        if pod["spec"]["automountServiceAccountToken"]
    }
    assert accounts == having <= CLIENTS_OF_DNS


def test_hook_reaches_an_external_store() -> None:
    rendered = render(EXTERNAL, nested("externalRedis.tls.existingSecret", "store-tls"))
    container = rendered.container(f"Job/{NAME}-uninstall")
    (url,) = [each for each in container["env"] if each["name"] == "REDIS_URL"]
    assert url["valueFrom"]["secretKeyRef"]["key"] == "admin-url"
    assert "/etc/penstock/store-tls" in [each["mountPath"] for each in container["volumeMounts"]]
    assert {"name": "store-tls"}.items() <= rendered.pod(f"Job/{NAME}-uninstall")["volumes"][1].items()
    policy = rendered[f"NetworkPolicy/{NAME}-uninstall"]["spec"]["egress"]
    assert {"port": 6379} in [port for rule in policy for port in rule["ports"]]


def test_hook_reaches_only_the_api_server_and_name_servers(flows: Flows) -> None:
    assert not flows.passes(flows.pods["uninstall"], flows.pods["redis"], 6379)
    assert not flows.passes(flows.pods["uninstall"], ELSEWHERE, 80)


def test_client_ports_are_open_by_default(flows: Flows) -> None:
    for edge, port in {"tmq": 6161, "pubsub": 7171, "rqp": 11311, "ring": 9000}.items():
        for sender in (flows.pods["test"], ELSEWHERE, None):
            assert flows.passes(sender, flows.pods[edge], port), (edge, sender)
        assert flows.passes(ELSEWHERE, flows.pods[edge], 9161)
    assert flows.passes(ELSEWHERE, flows.pods["operator"], 9161)


def test_helm_test_is_allowed_where_clients_are_restricted() -> None:
    named = [{"podSelector": {"matchLabels": {"may": "yes"}}}]
    flows = Flows(render(ALL, {"networkPolicy": {"clientsFrom": named, "metricsFrom": named}}))
    for port in (6161, 9161):
        assert flows.passes({"may": "yes"}, flows.pods["tmq"], port)
        assert not flows.passes(ELSEWHERE, flows.pods["tmq"], port)
    assert flows.passes(flows.pods["test"], flows.pods["tmq"], 6161)


@pytest.mark.parametrize(
    ("edge", "port", "protocol"), [("ring", 8085, "TCP"), ("ring", 8083, "UDP"), ("pubsub", 7172, "TCP")]
)
def test_peer_ports_are_open_to_pods_of_the_edge(flows: Flows, edge: str, port: int, protocol: str) -> None:
    own = flows.pods[edge]
    assert flows.passes(own, own, port, protocol)
    assert flows.passes(own, None, port, protocol)  # nodes and neighbours of other releases
    for sender in (ELSEWHERE, None, flows.pods["test"], flows.pods["tmq"]):
        assert not flows.passes(sender, own, port, protocol), sender


def test_operator_egress_is_applied() -> None:
    assert not Flows(render()).passes(Flows(render()).pods["operator"], None, 8443)
    rendered = Flows(render(nested("operator.networkPolicy.egress", [{"ports": [{"port": 8443}]}])))
    assert rendered.passes(rendered.pods["operator"], None, 8443)
    assert not rendered.passes(rendered.pods["tmq"], None, 8443)


# A single writer and its data -----------------------------------------------------------------------------------------


def test_store_and_operator_never_run_twice() -> None:
    rendered = render()
    assert rendered[f"StatefulSet/{NAME}-redis"]["spec"]["replicas"] == 1
    operator = rendered[f"Deployment/{NAME}-operator"]["spec"]
    assert (operator["replicas"], operator["strategy"]) == (1, {"type": "Recreate"})


def test_edges_are_replaced_one_by_one() -> None:
    """Check that a new edge is ready before an old one stops; on nodes' ports, after (docs/chart.md, "Upgrade")."""
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    for edge in EDGES - {"ring"}:
        assert render()[f"Deployment/{NAME}-{edge}"]["spec"]["strategy"] == rolling
    ring = render()[f"StatefulSet/{NAME}-ring"]["spec"]
    assert (ring["podManagementPolicy"], "updateStrategy" in ring) == ("Parallel", False)
    nodes = nested("networkPolicy.redisFrom", [{"ipBlock": {"cidr": "10.20.0.0/24"}}])
    rqp = render(nodes, nested("edges.rqp.hostNetwork", True))[f"Deployment/{NAME}-rqp"]["spec"]
    assert rqp["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    assert rqp["template"]["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"


def test_hook_runs_once_and_ends_in_time() -> None:
    spec = render(nested("operator.uninstallHook.timeoutSeconds", 90))[f"Job/{NAME}-uninstall"]["spec"]
    assert (spec["backoffLimit"], spec["activeDeadlineSeconds"]) == (0, 150)


def test_redis_may_load_and_keeps_passwords_in_memory() -> None:
    place = f"StatefulSet/{NAME}-redis"
    rendered = render()
    startup = rendered.container(place)["startupProbe"]
    assert startup["periodSeconds"] * startup["failureThreshold"] == 600
    (tmp,) = [each for each in rendered.pod(place)["volumes"] if each["name"] == "tmp"]
    assert tmp["emptyDir"] == {"medium": "Memory", "sizeLimit": "1Mi"}


def test_volumes_have_a_group_without_recursive_chown() -> None:
    outside = {"redis": {"enabled": False}, "externalRedis": {"existingSecret": "s"}}
    tls = nested("externalRedis.tls.existingSecret", "ca")
    for _, pod in render(ALL, outside, tls, nested("edgeDefaults.tls.secretName", "c"), RING_DIALS).pods():
        assert pod["spec"]["securityContext"]["fsGroup"] == 10001
        assert pod["spec"]["securityContext"]["fsGroupChangePolicy"] == "OnRootMismatch"
        for volume in pod["spec"].get("volumes", ()):
            if "secret" in volume:
                assert volume["secret"]["defaultMode"] == 0o440, volume


RING_DIALS = nested("edges.ring.settings.node.dial.tls", {"ca": "/etc/penstock/tls/ca.crt"})
