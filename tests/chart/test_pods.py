"""Limits, policies and annotations of every pod of a release: docs/chart.md, "Quotas, meshes, autoscalers"."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chart.chart import FULL, NAME, Rendered, Values, nested, render, together
from tests.chart.flows import selects
from tests.chart.switches import EXTERNAL, SHARED

LIMITS = {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"cpu": "1", "memory": "3Gi"}}
OWN_CONTAINERS = {"more", "first"}  # from the values, which set them completely
MADE_BY_SPARK = {"spark-kubernetes-driver", "spark-kubernetes-executor"}  # from other fields, or its settings
LOCAL_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
LIMITED: Values = {
    "edgeDefaults": {"resources": LIMITS},
    "operator": {"resources": LIMITS},
    "redis": {"resources": LIMITS},
    "console": {"resources": LIMITS},
    "helmTest": {"resources": LIMITS},
    "analytics": {
        "resources": LIMITS,
        "executors": {"enabled": True, "cpuLimit": "2"},
        "output": {**SHARED, "prepare": {"resources": LIMITS}},
    },
}
EVERYTHING: Values = together(FULL, LIMITED)
SPARK: Values = nested("analytics.mode", "scheduledSparkApplication")
CRONJOB = f"CronJob/{NAME}-analytics"


def job_of_output(rendered: Rendered) -> Any:
    (found,) = [each for each in rendered.of("Job") if "analytics-output" in each["metadata"]["name"]]
    return found


def pods(rendered: Rendered) -> dict[str, Any]:
    """Return all pods and pod templates by their owner, including those that Spark creates."""
    found = dict(rendered.pods())
    if f"ConfigMap/{NAME}-analytics" in rendered:
        found["executor"] = rendered.executor()
    for each in rendered.of("ScheduledSparkApplication"):
        for part in ("driver", "executor"):
            found[part] = each["spec"]["template"][part]["template"]
    return found


@pytest.mark.parametrize(
    "values", [{}, EXTERNAL, SPARK], ids=["own store", "store outside", "Spark operator"]
)
def test_every_pod_has_limits_a_policy_and_the_annotation(values: Values) -> None:
    everything = {**EVERYTHING, "redis": {}} if values == EXTERNAL else EVERYTHING
    rendered = render(everything, values)
    policies = rendered.of("NetworkPolicy")
    assert len(pods(rendered)) >= 10
    for place, pod in pods(rendered).items():
        labels, annotations = pod["metadata"]["labels"], pod["metadata"]["annotations"]
        assert annotations[LOCAL_VOLUMES] == "tmp,spark-local-dir-tmp", place
        chosen = [each["spec"] for each in policies if selects(each["spec"]["podSelector"], labels)]
        assert [each["policyTypes"] for each in chosen] == [["Ingress", "Egress"]], place
        for container in pod["spec"].get("containers", ()):
            if container["name"] not in OWN_CONTAINERS | MADE_BY_SPARK:
                assert set(container["resources"]["limits"]) == {"cpu", "memory"}, (place, container["name"])


def test_executors_have_cpu_limits() -> None:
    args = render(EVERYTHING).container(CRONJOB)["args"]
    assert "--conf=spark.kubernetes.executor.limit.cores=2" in args
    (application,) = render(EVERYTHING, SPARK).of("ScheduledSparkApplication")
    template = application["spec"]["template"]
    assert (template["driver"]["coreLimit"], template["driver"]["coreRequest"]) == ("1", "10m")
    assert (template["executor"]["coreLimit"], template["executor"]["coreRequest"]) == ("2", "200m")


def test_pod_annotations_override_common_ones() -> None:
    mesh = {
        "podAnnotations": {"mesh": "off", LOCAL_VOLUMES: None},
        **nested("redis.podAnnotations.mesh", "on"),
    }
    rendered = render(EVERYTHING, mesh)
    for place, pod in pods(rendered).items():
        annotations = pod["metadata"]["annotations"]
        assert annotations["mesh"] == ("on" if "redis" in place else "off"), place
        assert LOCAL_VOLUMES not in annotations, place


def test_output_job_stays_by_default() -> None:
    """Check that the output Job stays by default: for GitOps tools a deleted object is a permanent difference."""
    assert "ttlSecondsAfterFinished" not in job_of_output(render(EVERYTHING))["spec"]
    values = nested("analytics.output.prepare.ttlSecondsAfterFinished", 0)
    assert job_of_output(render(EVERYTHING, values))["spec"]["ttlSecondsAfterFinished"] == 0


def test_rules_for_all_pods_are_in_every_policy() -> None:
    ingress, egress = {"ports": [{"port": 15008}]}, {"ports": [{"port": 15012}]}
    rules = nested("networkPolicy", {"ingress": [ingress], "egress": [egress]})
    for values in ({}, SPARK):
        for each in render(EVERYTHING, values, rules).of("NetworkPolicy"):
            assert ingress in each["spec"]["ingress"], each["metadata"]["name"]
            assert egress in each["spec"]["egress"], each["metadata"]["name"]


def test_api_server_policy_uses_configured_address_and_ports() -> None:
    there = [{"ipBlock": {"cidr": "10.0.0.1/32"}}]
    rendered = render(
        EVERYTHING, nested("networkPolicy", {"kubernetesPorts": [16443], "kubernetesTo": there})
    )
    for name in ("operator", "uninstall", "analytics"):
        egress = rendered[f"NetworkPolicy/{NAME}-{name}"]["spec"]["egress"]
        assert {"ports": [{"port": 16443}], "to": there} in egress, name
