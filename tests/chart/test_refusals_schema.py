"""Values of the wrong kind are refused before anything is made of them: by values.schema.json."""

from __future__ import annotations

import pytest

from tests.chart.chart import Values, must_refuse, nested

REFUSALS: dict[str, tuple[Values, str]] = {
    "devices that the pod does not claim": (
        nested("edges.tmq.resources.claims", [{"name": "gpu"}]),
        "additional properties 'claims' not allowed",
    ),
    "a name that there is not": (nested("edges.tmq.replicaz", 3), "'replicaz' not allowed"),
    "another kind of value": (nested("edges.tmq.replicas", "three"), "/edges/tmq/replicas"),
    "hpa and keda": (
        nested("edges.tmq.autoscaling.type", "hpa,keda"),
        "value must be one of 'none', 'hpa', 'keda'",
    ),
    "a number that is none": (
        nested("edgeDefaults.resources.limits.memory", "lots"),
        "'lots' does not match pattern",
    ),
    "a label's name that is none": (
        nested("edgeDefaults.podLabels", {"a b": "1"}),
        "invalid propertyName 'a b'",
    ),
    "more pods than there are": (
        nested("edges.tmq.pdb.maxUnavailable", "120%"),
        "'120%' does not match pattern",
    ),
    "a port whose name is too long": (
        nested("edges.tmq.ports.a-name-of-seventeen", {"port": 1}),
        "at '/edges/tmq/ports': additional properties 'a-name-of-seventeen' not allowed",
    ),
    "an edge whose name is none": (nested("edges.Telex", {}), "at '/edges': additional properties 'Telex'"),
    "a workload of another kind": (
        nested("edges.tmq.workload", "DaemonSet"),
        "value must be one of 'Deployment', 'StatefulSet'",
    ),
    "a port whose name is a number": (
        nested("edges.tmq.ports.11", {"port": 11}),
        "'11' does not match pattern '[a-z]'",
    ),
    "words in place of seconds": (
        nested("edges.tmq.drain.spreadSeconds", "soon"),
        "/edges/tmq/drain/spreadSeconds",
    ),
    "one at the top": (nested("edgez", {}), "'edgez' not allowed"),
    "one in a nested map": (nested("redis.persistence.siz", "1Gi"), "'siz' not allowed"),
    "a label that is none": (nested("commonLabels.team", "of queues"), "'of queues' does not match pattern"),
    "a level of logs that there is not": (nested("log.level", "LOUD"), "value must be one of 'DEBUG'"),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_a_value_that_is_none_is_refused(what: str) -> None:
    must_refuse(*REFUSALS[what])
