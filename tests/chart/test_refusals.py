"""What cannot be together is refused in words that say what to do: by _checks.tpl."""

from __future__ import annotations

import pytest

from tests.chart.chart import Refused, Values, must_refuse, nested, render, together

EDGES = ("tmq", "pubsub", "rqp", "ring")
REFUSALS: dict[str, tuple[Values, str]] = {
    "an alert that there is not": (
        nested("monitoring.prometheusRule.disabled", ["PenstockEdgeDwon"]),
        'monitoring.prometheusRule.disabled: there is no alert "PenstockEdgeDwon", there are: Penstock',
    ),
    "queues left out of an alert, whose names nobody tells": (
        nested("monitoring.prometheusRule.deadLettersExceptQueues", ["test"]),
        "monitoring.prometheusRule.deadLettersExceptQueues: metrics have no names of queues: set monitoring.queues",
    ),
    "a password beside the Secret that says it": (
        nested("redis.auth", {"existingSecret": "store", "adminPassword": "s3cret"}),
        "redis.auth.adminPassword: the Secret of redis.auth.existingSecret says it: leave one of the two out",
    ),
    "TLS to the chart's own Redis": (
        nested("externalRedis.tls.existingSecret", "tls"),
        "externalRedis.tls.existingSecret: the chart's own Redis would be used, which has no TLS",
    ),
    "a query of what nobody tells": (
        together(
            nested("operator.enabled", False),
            nested("edges.tmq.autoscaling", {"type": "keda", "keda": {"serverAddress": "http://p:9090"}}),
        ),
        "edges.tmq.autoscaling.keda.query: what it asks for is told by the operator, which is off",
    ),
    "a setting of Redis in two ways of writing it": (
        nested("redis.config", {"maxclients": "100", "MaxClients": "200"}),
        "it is there as MaxClients, too: leave one of the two out",
    ),
    "the same of CPU": (
        nested("redis.resources", {"requests": {"cpu": "1500m"}, "limits": {"cpu": 1}}),
        "redis.resources: it asks for 1500m of cpu and may have 1 at most",
    ),
    "a URL beside the Secret that says it": (
        {
            "redis": {"enabled": False},
            "externalRedis": {"url": "redis://there:6379", "existingSecret": "store"},
        },
        "externalRedis.url: the Secret of externalRedis.existingSecret says it: leave one of the two out",
    ),
    "all namespaces and some": (
        nested("operator.watch", {"allNamespaces": True, "namespaces": ["east"]}),
        "operator.watch: allNamespaces has all of them, and namespaces some: leave one of the two out",
    ),
    "edges of some namespaces where all are watched": (
        nested("operator", {"watch": {"allNamespaces": True}, "discover": {"namespaces": ["yard"]}}),
        "operator.discover.namespaces: operator.watch.allNamespaces finds the edges of every namespace",
    ),
    "an Ingress of no name": (
        nested("console", {"enabled": True, "ingress": {"enabled": True}}),
        "console.ingress: say hosts, the names by which browsers come",
    ),
    "no store": (
        nested("redis.enabled", False),
        "no store: set redis.enabled, externalRedis.url or externalRedis.existingSecret",
    ),
    "no store, and no edge either": (
        {"redis": {"enabled": False}, "edges": {name: {"enabled": False} for name in EDGES}},
        "no store: set redis.enabled, externalRedis.url or externalRedis.existingSecret",
    ),
    "two stores": (
        nested("externalRedis.url", "redis://store.example/0"),
        "externalRedis.url: the chart's own Redis would be used: set redis.enabled=false, or leave it out",
    ),
    "two stores, one by a Secret": (
        nested("externalRedis.existingSecret", "store"),
        "externalRedis.existingSecret: the chart's own Redis would be used",
    ),
    "an account that everybody has": (
        nested("operator.serviceAccount.create", False),
        "operator.serviceAccount: without create it needs name",
    ),
    "a StatefulSet whose name is too long": (
        together(
            {"fullnameOverride": "a" * 40},
            nested("edges.a-long-name", {"workload": "StatefulSet", "ports": {"a": {"port": 1}}}),
            nested("edges.an-even-longer", {"workload": "StatefulSet", "ports": {"a": {"port": 1}}}),
        ),
        "edges.an-even-longer: " + "a" * 40 + "-an-even-longer has more than 52 characters",
    ),
    "a store that acknowledges before it has": (
        nested("redis.config", {"AppendFsync": "no"}),
        "redis.config.AppendFsync: otherwise than the chart has it, the store would lose what it acknowledged",
    ),
    "a store that throws messages away": (
        nested("redis.config", {"maxmemory-policy": "allkeys-lru"}),
        "redis.config.maxmemory-policy: otherwise than the chart has it",
    ),
    "memory of the store by the way": (nested("redis.config", {"maxmemory": "1gb"}), "say redis.maxmemory"),
    "more memory than the pod has": (
        nested("redis.maxmemory", "4gb"),
        "redis.maxmemory: 4gb is not less than redis.resources.limits.memory, 1Gi",
    ),
    "more memory than a number says": (
        nested("redis", {"maxmemory": "600m", "resources": {"limits": {"memory": 500000000}}}),
        "redis.maxmemory: 600m is not less than redis.resources.limits.memory, 500000000",
    ),
    "users of Redis by the way": (
        nested("redis.config", {"requirepass": "x"}),
        "redis.config.requirepass: the chart says that itself",
    ),
    "every pod counted twice": (
        nested("monitoring", {"podMonitor": {"enabled": True}, "serviceMonitor": {"enabled": True}}),
        "monitoring: podMonitor and serviceMonitor are both on: everything would be counted twice",
    ),
    "a name that no Service can have": (
        {"fullnameOverride": "My_Queues"},
        "the name My_Queues is none that a Service can have: say a fullnameOverride of small letters",
    ),
    "a name that no label can have": (
        {"fullnameOverride": "queues", "nameOverride": "my queues"},
        "nameOverride: my queues is no label's value",
    ),
    "the same of the operator": (
        nested("operator.podLabels", {"app.kubernetes.io/name": "mine"}),
        "operator.podLabels: the label app.kubernetes.io/name is the chart's own",
    ),
    "the same of all": (
        {"commonLabels": {"app.kubernetes.io/instance": "mine"}},
        "commonLabels: the label app.kubernetes.io/instance is the chart's own",
    ),
    "a variable of the operator's, again": (
        nested("operator.extraEnv", [{"name": "PENSTOCK_OPERATOR_SWEEP_S", "value": "9"}]),
        "operator: the variable PENSTOCK_OPERATOR_SWEEP_S is there twice",
    ),
    "executors on a volume of one node": (
        nested("analytics", {"enabled": True, "executors": {"enabled": True}}),
        "analytics.executors: pods on several nodes write to one output: say analytics.output.url",
    ),
    "an output of two places": (
        nested("analytics", {"enabled": True, "output": {"url": "s3a://b/p", "existingClaim": "c"}}),
        "analytics.output: url and existingClaim are two places",
    ),
    "a heap that is all of the container": (
        nested("analytics", {"enabled": True, "driverMemory": "4g"}),
        "analytics.driverMemory: 4g is not less than analytics.resources.limits.memory, 4Gi",
    ),
    "a variable of the analytics', again": (
        nested("analytics", {"enabled": True, "extraEnv": [{"name": "SPARK_LOCAL_DIRS", "value": "/a"}]}),
        "analytics: the variable SPARK_LOCAL_DIRS is there twice",
    ),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_what_cannot_be_is_refused(what: str) -> None:
    must_refuse(*REFUSALS[what])


def test_a_name_that_begins_with_a_digit_is_for_newer_clusters() -> None:
    """Those before refuse the Services, when other objects are made already."""
    with pytest.raises(Refused, match="the name 7up is none that a Service can have"):
        render({"fullnameOverride": "7up"}, flags=("--kube-version", "1.34.0"))
    assert render({"fullnameOverride": "7up"}, flags=("--kube-version", "1.36.0")).of("Service")
