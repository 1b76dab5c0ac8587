"""Every switch of values.yaml with what exists only if it is on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.chart.chart import FULL, NAME, Rendered, Values, nested, render, together
from tests.chart.console import CONSOLE_SWITCHES
from tests.chart.switch import Switch

TMQ = f"Deployment/{NAME}-tmq"
OPERATOR = f"Deployment/{NAME}-operator"
EXTERNAL: Values = {
    "redis": {"enabled": False},
    "externalRedis": {"url": "redis://edge:secret@store.example/0"},
}

NODES: Values = nested("networkPolicy.redisFrom", [{"ipBlock": {"cidr": "10.20.0.0/24"}}])


def _edge(name: str, workload: str, *more: str) -> Switch:
    kinds = (workload, "Service", "ConfigMap", "PodDisruptionBudget", "NetworkPolicy")
    own = tuple(f"{kind}/{NAME}-{name}" for kind in kinds)
    return Switch(
        f"edges.{name}.enabled",
        (*own, *more),
        has=lambda r: f"TEST_{name.upper()}" in r.env(f"Pod/{NAME}-test"),
    )


def _annotations(rendered: Rendered, place: str) -> Any:
    return rendered[place]["metadata"].get("annotations", {})


def _rules(rendered: Rendered) -> list[str]:
    groups = rendered[f"PrometheusRule/{NAME}"]["spec"]["groups"]
    return [rule["alert"] for group in groups for rule in group["rules"]]


def _volumes(rendered: Rendered, place: str) -> list[str]:
    return [volume["name"] for volume in rendered.pod(place)["volumes"]]


def _analytics(rendered: Rendered) -> list[str]:
    """Return the flags of the analytics job."""
    return list(rendered.container(f"CronJob/{NAME}-analytics")["args"])


POLICIES = tuple(
    f"NetworkPolicy/{NAME}-{who}" for who in ("tmq", "ring", "rqp", "pubsub", "operator", "redis")
)
ANALYTICS = {"analytics": {"enabled": True}}
RULES = nested("monitoring.prometheusRule.enabled", True)
ANALYTICS_ROLE = (f"Role/{NAME}-analytics", f"RoleBinding/{NAME}-analytics")
SHARED = {"accessModes": ["ReadWriteMany"]}  # the folder that executors write to
EXECUTORS = {"analytics": {"enabled": True, "executors": {"enabled": True}, "output": SHARED}}

SWITCHES = (
    _edge("tmq", "Deployment"),
    _edge("pubsub", "Deployment"),
    _edge("rqp", "Deployment", f"Service/{NAME}-rqp-peers"),
    _edge("ring", "StatefulSet", f"Service/{NAME}-ring-peers"),
    Switch("edgeDefaults.enabled", (TMQ,), beside={"edges": {"tmq": {"enabled": None}}}),
    Switch("edges.tmq.peersService", (f"Service/{NAME}-tmq-peers",)),
    Switch(
        "edges.tmq.service.discover",
        has=lambda r: r[f"Service/{NAME}-tmq"]["metadata"]["labels"].get("penstock.dev/discover"),
    ),
    Switch(
        "edges.tmq.tls.secretName",
        on="tmq-certificate",
        off="",
        has=lambda r: (
            "tls" in _volumes(r, TMQ)
            and r.file("tmq")["edges"]["tmq"]["listeners"]["reference"]["tls"]
            == {"certificate": "/etc/penstock/tls/tls.crt", "key": "/etc/penstock/tls/tls.key"}
            and r.env(f"Pod/{NAME}-test")["TEST_TMQ"].startswith("tls://")
        ),
    ),
    Switch(
        "edges.tmq.tls.clientCA",
        beside=nested("edges.tmq.tls.secretName", "tmq-certificate"),
        has=lambda r: (
            "client_ca" in r.file("tmq")["edges"]["tmq"]["listeners"]["document"]["tls"]
            and "TEST_TMQ" not in r.env(f"Pod/{NAME}-test")
        ),
    ),
    Switch("edges.tmq.pdb.enabled", (f"PodDisruptionBudget/{NAME}-tmq",)),
    Switch("edges.tmq.autoscaling.type", (f"HorizontalPodAutoscaler/{NAME}-tmq",), on="hpa", off="none"),
    Switch(
        "edges.ring.autoscaling.type",  # only the clients' port: nodes cannot be scaled
        (f"ScaledObject/{NAME}-ring",),
        has=lambda r: "replicas" not in r[f"StatefulSet/{NAME}-ring"]["spec"],
        on="keda",
        off="none",
        beside=together(
            nested("edges.ring.autoscaling.keda.serverAddress", "http://prometheus:9090"),
            nested("edges.ring.ports.ring.enabled", False),
        ),
    ),
    Switch(
        "edges.rqp.hostNetwork",
        beside=NODES,
        has=lambda r: (
            r.pod(f"Deployment/{NAME}-rqp").get("hostNetwork")
            and r[f"Deployment/{NAME}-rqp"]["spec"]["strategy"]["rollingUpdate"]["maxSurge"] == 0
        ),
    ),
    Switch(
        "edges.tmq.ports.tmq-reference.enabled",
        has=lambda r: (
            "tmq-reference" in [port["name"] for port in r[f"Service/{NAME}-tmq"]["spec"]["ports"]]
            and r.file("tmq")["edges"]["tmq"]["listeners"]["reference"]
        ),
    ),
    Switch(
        "edges.pubsub.ports.text-link.enabled",
        has=lambda r: (
            7172 in [port["port"] for port in r[f"Service/{NAME}-pubsub"]["spec"]["ports"]]
            and r.file("pubsub")["edges"]["pubsub"]["listeners"]["link"]
        ),
    ),
    Switch(
        "edges.tmq.ports.tmq-reference.expose",
        has=lambda r: "tmq-reference" in [p["name"] for p in r[f"Service/{NAME}-tmq"]["spec"]["ports"]],
    ),
    Switch(
        "operator.enabled",
        (
            OPERATOR,
            f"ServiceAccount/{NAME}-operator",
            f"Role/{NAME}-operator",
            f"RoleBinding/{NAME}-operator",
            f"Role/{NAME}-operator-own",
            f"ConfigMap/{NAME}-rqprc",
            f"ConfigMap/{NAME}-dataset",
            f"NetworkPolicy/{NAME}-operator",
        ),
    ),
    Switch(
        "operator.watch.allNamespaces",
        (
            f"ClusterRole/shop.{NAME}-operator",
            f"ClusterRoleBinding/shop.{NAME}-operator",
            f"ClusterRole/shop.{NAME}-uninstall",
        ),
        has=lambda r: r.env(OPERATOR)["PENSTOCK_OPERATOR_NAMESPACES"] == "*",
    ),
    Switch(
        "operator.watch.namespaces",
        (f"Role/shop.{NAME}-operator@east", f"RoleBinding/shop.{NAME}-operator@west"),
        has=lambda r: r.env(OPERATOR)["PENSTOCK_OPERATOR_NAMESPACES"] == "shop,east,west",
        on=["shop", "east", "west"],
        off=[],
    ),
    Switch("operator.acceptLoss", has=lambda r: r.env(OPERATOR)["PENSTOCK_OPERATOR_ACCEPT_LOSS"] == "true"),
    Switch(
        "operator.rqprc",
        (f"ConfigMap/{NAME}-rqprc",),
        has=lambda r: r.env(OPERATOR)["PENSTOCK_OPERATOR_RQPRC_CONFIGMAP"] == f"{NAME}-rqprc",
    ),
    Switch(
        "operator.uninstallHook.enabled",
        (f"Job/{NAME}-uninstall", f"ServiceAccount/{NAME}-uninstall", f"Role/{NAME}-uninstall"),
    ),
    Switch("operator.uninstallHook.always", (f"Job/{NAME}-uninstall",)),
    Switch(
        "operator.serviceAccount.create",
        ("ServiceAccount/seer",),
        beside=nested("operator.serviceAccount.name", "seer"),
    ),
    Switch(
        "redis.enabled",
        tuple(f"{kind}/{NAME}-redis" for kind in ("StatefulSet", "Service", "Secret", "ConfigMap")),
        instead={"externalRedis": {"existingSecret": "store"}},
    ),
    Switch(
        "redis.persistence.enabled",
        has=lambda r: "volumeClaimTemplates" in r[f"StatefulSet/{NAME}-redis"]["spec"],
    ),
    Switch(
        "redis.auth.existingSecret",
        on="passwords",
        off="",
        has=lambda r: (
            f"Secret/{NAME}-redis" not in r
            and secret_of(r, TMQ, "STORE_PASSWORD") == {"name": "passwords", "key": "edge-password"}
        ),
    ),
    Switch(
        "externalRedis.existingSecret",
        on="store",
        off="",
        beside={"redis": {"enabled": False}},
        instead=EXTERNAL,
        has=lambda r: (
            not r.of("Secret")
            and secret_of(r, OPERATOR, "REDIS_URL") == {"name": "store", "key": "admin-url"}
        ),
    ),
    Switch(
        "externalRedis.tls.existingSecret",
        on="store-ca",
        off="",
        beside=EXTERNAL,
        has=lambda r: "store-tls" in _volumes(r, TMQ) and "store-tls" in _volumes(r, OPERATOR),
    ),
    Switch("networkPolicy.enabled", POLICIES),
    Switch(
        "crds.enabled", tuple(f"CustomResourceDefinition/{kind}.penstock.dev" for kind in ("queues", "peers"))
    ),
    Switch(
        "crds.keep",
        has=lambda r: (
            _annotations(r, "CustomResourceDefinition/queues.penstock.dev").get("helm.sh/resource-policy")
            == "keep"
        ),
    ),
    Switch(
        "rbac.create",
        (
            f"Role/{NAME}-operator",
            f"Role/{NAME}-uninstall",
            f"ClusterRole/shop.{NAME}-view",
            *ANALYTICS_ROLE,
        ),
        beside=EXECUTORS,
    ),
    Switch(
        "rbac.aggregate",
        (f"ClusterRole/shop.{NAME}-view", f"ClusterRole/shop.{NAME}-edit", f"ClusterRole/shop.{NAME}-admin"),
    ),
    Switch("monitoring.queues.enabled", has=lambda r: "PENSTOCK_OPERATOR_QUEUE_METRICS" in r.env(OPERATOR)),
    Switch(  # otherwise it would name queues differently than the operator and export everything twice
        "monitoring.queues.enabled",
        beside=nested("console.enabled", True),
        has=lambda r: "queues: true" in r[f"ConfigMap/{NAME}-console"]["data"]["penstock.yaml"],
    ),
    Switch(
        "monitoring.queues.latencies",
        beside=nested("monitoring.queues.enabled", True),
        has=lambda r: "queue_latencies: true" in r[f"ConfigMap/{NAME}-tmq"]["data"]["penstock.yaml"],
    ),
    Switch("monitoring.podMonitor.enabled", (f"PodMonitor/{NAME}",)),
    Switch("monitoring.serviceMonitor.enabled", (f"ServiceMonitor/{NAME}",)),
    Switch("monitoring.prometheusRule.enabled", (f"PrometheusRule/{NAME}",)),
    Switch(
        "monitoring.prometheusRule.disabled",
        on=[],
        off=["PenstockEdgeNotReady"],
        beside=RULES,
        has=lambda r: "PenstockEdgeNotReady" in _rules(r),
    ),
    Switch("monitoring.dashboards.enabled", (f"ConfigMap/{NAME}-dashboards",)),
    *CONSOLE_SWITCHES,
    Switch(
        "analytics.enabled",
        tuple(f"{kind}/{NAME}-analytics" for kind in ("CronJob", "ServiceAccount", "PersistentVolumeClaim")),
        beside=RULES,
        has=lambda r: "PenstockAnalyticsStale" in _rules(r),
    ),
    Switch(
        "analytics.mode",
        (f"ScheduledSparkApplication/{NAME}-analytics", *ANALYTICS_ROLE),
        on="scheduledSparkApplication",
        off="cronjob",
        beside={"analytics": {"enabled": True, "output": SHARED}},
    ),
    Switch(
        "analytics.output.keep",
        beside=ANALYTICS,
        has=lambda r: (
            _annotations(r, f"PersistentVolumeClaim/{NAME}-analytics").get("helm.sh/resource-policy")
            == "keep"
        ),
    ),
    Switch(
        "analytics.output.existingClaim",
        on="theirs",
        off="",
        beside=ANALYTICS,
        has=lambda r: (
            f"PersistentVolumeClaim/{NAME}-analytics" not in r
            and {"name": "output", "persistentVolumeClaim": {"claimName": "theirs"}}
            in r.pod(f"CronJob/{NAME}-analytics")["volumes"]
        ),
    ),
    Switch(
        "analytics.output.url",
        on="s3a://bucket/penstock",
        off="",
        beside=ANALYTICS,
        has=lambda r: (
            f"PersistentVolumeClaim/{NAME}-analytics" not in r
            and "--output=s3a://bucket/penstock" in _analytics(r)
            and "output" not in _volumes(r, f"CronJob/{NAME}-analytics")
        ),
    ),
    Switch(
        "analytics.job.failOnDataLoss",
        beside=ANALYTICS,
        has=lambda r: "--fail-on-data-loss" in _analytics(r),
    ),
    Switch(
        "analytics.suspend",
        beside=together(ANALYTICS, RULES),
        has=lambda r: (
            r[f"CronJob/{NAME}-analytics"]["spec"]["suspend"] and "PenstockAnalyticsStale" not in _rules(r)
        ),
    ),
    Switch(
        "analytics.executors.enabled",
        (*ANALYTICS_ROLE, f"ConfigMap/{NAME}-analytics", f"NetworkPolicy/{NAME}-analytics-executor"),
        beside={"analytics": {"enabled": True, "output": SHARED}},
        has=lambda r: "--master=k8s://https://kubernetes.default.svc" in _analytics(r),
    ),
    Switch(
        "analytics.metrics.enabled",
        (f"PodMonitor/{NAME}-analytics",),
        beside=together(ANALYTICS, nested("monitoring.podMonitor.enabled", True)),
        has=lambda r: "--conf=spark.ui.enabled=true" in _analytics(r),
    ),
    Switch(
        "analytics.eventLog",
        beside=ANALYTICS,
        has=lambda r: "--conf=spark.eventLog.enabled=true" in _analytics(r),
    ),
    Switch("helmTest.enabled", (f"Pod/{NAME}-test", f"ConfigMap/{NAME}-test")),
)


def renderings() -> Iterator[Rendered]:
    """Return the rendering of each switch alone and of all values together."""
    yield render()
    yield render(EXTERNAL)
    yield render(FULL)
    for switch in SWITCHES:
        yield switch.rendered_on()
        yield switch.rendered_off()


def secret_of(rendered: Rendered, place: str, variable: str) -> Any:
    env = {each["name"]: each for each in rendered.container(place)["env"]}
    return env[variable]["valueFrom"]["secretKeyRef"]
