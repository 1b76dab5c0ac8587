"""Values of the wrong kind are refused before anything is made of them: by values.schema.json."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.chart.chart import CHART, nested, refusal, together

REFUSALS: dict[str, tuple[Any, str]] = {  # by path: the value, and helm's words
    "edges.tmq.resources.claims": ([{"name": "gpu"}], "additional properties 'claims' not allowed"),
    "edges.tmq.replicaz": (3, "'replicaz' not allowed"),
    "edges.tmq.replicas": ("three", "/edges/tmq/replicas"),
    "edges.rqp.replicas": (-1, "minimum: got -1, want 0"),
    "edges.tmq.autoscaling.type": ("hpa,keda", "value must be one of 'none', 'hpa', 'keda'"),
    "edgeDefaults.resources.limits.memory": ("lots", "'lots' does not match pattern"),
    "edgeDefaults.podLabels": ({"a b": "1"}, "invalid propertyName 'a b'"),
    "edges.tmq.pdb.maxUnavailable": ("120%", "'120%' does not match pattern"),
    "edges.tmq.ports.a-name-of-seventeen": ({"port": 1}, "'a-name-of-seventeen' not allowed"),
    "edges.tmq.ports.11": ({"port": 11}, "'11' does not match pattern '[a-z]'"),
    "edges.tmq.ports.a--b": ({"port": 11}, "'not' failed"),
    "edges.tmq.ports.tmq-document.port": (70000, "maximum: got 70,000"),
    "edges.Telex": ({}, "at '/edges': additional properties 'Telex'"),
    "edges.tmq.workload": ("DaemonSet", "value must be one of 'Deployment', 'StatefulSet'"),
    "edges.tmq.drain.spreadSeconds": ("soon", "/edges/tmq/drain/spreadSeconds"),
    "edgez": ({}, "'edgez' not allowed"),
    "redis.persistence.siz": ("1Gi", "'siz' not allowed"),
    "redis.persistence.accessModes": ([], "minItems: got 0, want 1"),
    "redis.persistence.size": ("lots", "/redis/persistence/size"),
    "redis.auth.edgePassword": ("a b", "/redis/auth/edgePassword"),
    "redis.maxmemory": ("1Gi", "/redis/maxmemory"),
    "externalRedis.url": ("http://a", "/externalRedis/url"),
    "commonLabels.team": ("of queues", "'of queues' does not match pattern"),
    "log.level": ("LOUD", "value must be one of 'DEBUG'"),
    "operator.uninstallHook.timeoutSeconds": (600, "maximum: got 600, want 240"),
    "operator.sweepSeconds": (0, "minimum: got 0, want 1"),
    "global.imagePullSecrets": ([{"nam": "x"}], "/global/imagePullSecrets/0"),
    "console.auth.tokens": ([{"name": "ann", "role": "root", "key": "a"}], "/console/auth/tokens/0/role"),
    "tracing.endpoint": ("collector:4318", "/tracing/endpoint"),
    "tracing.tracesEndpoint": ("grpc://collector:4317", "/tracing/tracesEndpoint"),
    "analytics.schedule": ("7 * * * *\n", "/analytics/schedule"),
}


def test_values_of_the_wrong_kind_are_refused_all_at_once() -> None:
    said = refusal(together(*(nested(path, value) for path, (value, _) in REFUSALS.items())))
    assert [words for _, words in REFUSALS.values() if words not in said] == []


SCHEDULES = (
    *("7 * * * *", "*/15 0-6,22,23 1 JAN-mar ?", "59 23 31 12 sun", "00\t09  * * 1-5/2"),
    *("@hourly", "@every 1h30m"),
)
NO_SCHEDULES = (
    *("", "sometimes", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *"),
    *("* * * 13 *", "* * * * 7", "*/0 * * * *", "1- * * * *", ",1 * * * *", "@often", "@every day"),
    "TZ=UTC 7 * * * *",
)


def test_schedules_are_those_of_cron() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    pattern = re.compile(schema["properties"]["analytics"]["properties"]["schedule"]["pattern"])
    assert [text for text in SCHEDULES if not pattern.search(text)] == []
    assert [text for text in NO_SCHEDULES if pattern.search(text)] == []
