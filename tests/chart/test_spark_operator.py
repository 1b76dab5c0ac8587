"""The ScheduledSparkApplication: an API server accepts it, and spark-submit makes the driver's pod of it.

What the operator adds to the values is in tests/kubernetes/spark_operator.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.analytics.__main__ import run_command
from tests.chart.chart import FULL, NAME, Rendered, Values, nested, render, together
from tests.chart.switches import EXTERNAL, SHARED
from tests.kubernetes.cluster import Cluster, CommandFailed
from tests.kubernetes.spark_operator import APP_NAME, CONTAINERS, Run, defined
from tests.program import ROOT
from tests.servers import eventually

SPARK: Values = {
    "analytics": {"enabled": True, "mode": "scheduledSparkApplication", "output": SHARED},
}
PLACE = f"ScheduledSparkApplication/{NAME}-analytics"
EVERYTHING = together(FULL, SPARK)
BUCKET = together(EXTERNAL, SPARK, nested("analytics.output.url", "s3a://bucket/folder"))
COMPONENT = "app.kubernetes.io/component"
SECONDS = "1790000000123456789"  # as many digits as the operator appends to the name


def template(rendered: Rendered) -> Any:
    return rendered[PLACE]["spec"]["template"]


@pytest.fixture(scope="module")
def operator(api_server: Any) -> Iterator[Cluster]:
    """Yield the cluster, in which ScheduledSparkApplications are defined."""
    cluster = api_server.as_user()
    with defined(cluster):
        yield cluster


# The object --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [SPARK, EVERYTHING, BUCKET], ids=["plain", "full", "bucket"])
def test_api_server_accepts_the_object(operator: Cluster, namespace: str, values: Values) -> None:
    given = render(values, namespace=namespace)[PLACE]
    made = operator.create(given, namespace, dry_run=True)
    assert made["spec"] == given["spec"]


def test_misspelt_fields_are_refused(operator: Cluster, namespace: str) -> None:
    given = render(SPARK, namespace=namespace)[PLACE]
    wrong = {**given["spec"], "template": {**given["spec"]["template"], "argments": []}}
    with pytest.raises(CommandFailed, match="argments"):
        operator.create({**given, "spec": wrong}, namespace, dry_run=True)


@pytest.mark.parametrize("values", [SPARK, EVERYTHING, BUCKET], ids=["plain", "full", "bucket"])
@pytest.mark.parametrize("part", ["driver", "executor"])
def test_templates_are_restricted_pods(cluster: Cluster, restricted: str, part: str, values: Values) -> None:
    """Check the templates, which the definition does not describe, as pods with what Spark adds."""
    rendered = render(values, namespace=restricted)
    cluster.apply(rendered.of("ServiceAccount"), "--namespace", restricted)
    pod = template(rendered)[part]["template"]
    (container,) = pod["spec"]["containers"]
    assert container["name"] == CONTAINERS[part]
    spec = {**pod["spec"], "containers": [{**container, "image": "i"}], "priorityClassName": ""}
    document = {"apiVersion": "v1", "kind": "Pod", **pod, "spec": spec}
    document["metadata"] = {**pod["metadata"], "name": part}
    made = cluster.create(document, restricted, dry_run=True)
    assert made["spec"]["securityContext"]["runAsUser"] == 10001
    assert made["spec"]["automountServiceAccountToken"] is (part == "driver")


def test_schedule_has_the_fields_of_the_cronjob() -> None:
    spec = render(SPARK, nested("analytics.timeZone", "Europe/Berlin"))[PLACE]["spec"]
    assert (spec["concurrencyPolicy"], spec["suspend"], spec["schedule"]) == ("Forbid", False, "7 * * * *")
    assert (spec["successfulRunHistoryLimit"], spec["failedRunHistoryLimit"]) == (3, 3)
    assert spec["timeZone"] == "Europe/Berlin"
    assert spec["template"]["timeToLiveSeconds"] == 86400
    assert spec["template"]["driver"]["template"]["spec"]["activeDeadlineSeconds"] == 3600


def test_retries_are_those_of_the_cronjob() -> None:
    assert template(render(SPARK))["restartPolicy"]["onFailureRetries"] == 1
    assert template(render(SPARK, nested("analytics.backoffLimit", 0)))["restartPolicy"] == {"type": "Never"}


def test_version_is_that_of_the_image() -> None:
    pinned = re.search(
        r"^pyspark==(\S+)", (ROOT / "requirements" / "analytics.txt").read_text(), re.MULTILINE
    )
    assert pinned
    assert template(render(SPARK))["sparkVersion"] == pinned[1]


def test_job_gets_what_would_override_settings_of_spark_submit() -> None:
    """Check the arguments: the job's own settings win over sparkConf, and its master is that of spark-submit."""
    rendered = render(SPARK, nested("analytics.sparkConf", {"spark.ui.enabled": True}))
    command, *words = template(rendered)["arguments"]
    words = ["--store=redis://127.0.0.1", *words]
    found = run_command.make_context(command, words, auto_envvar_prefix=None).params
    assert (found["master"], found["run_id"]) == ("", "$(RUN_NAME)")
    assert found["conf"] == ("spark.ui.enabled=true",)
    conf = template(rendered)["sparkConf"]
    assert (conf["spark.ui.enabled"], conf["spark.driver.port"]) == ("true", "7078")
    assert "spark.master" not in conf  # the operator refuses it


@pytest.mark.parametrize(
    ("limit", "heap", "overhead"), [("4Gi", "2048m", "2048m"), ("3G", "1430m", "1431m"), (None, "2g", None)]
)
def test_memory_of_the_driver_is_its_limit(limit: str | None, heap: str, overhead: str | None) -> None:
    limits = nested("analytics.resources", {"requests": {"memory": None}, "limits": {"memory": limit}})
    driver = template(render(SPARK, limits))["driver"]
    assert (driver["memory"], driver.get("memoryOverhead")) == (heap, overhead)


def test_only_the_drivers_pod_has_a_token() -> None:
    assert render(SPARK)[f"ServiceAccount/{NAME}-analytics"]["automountServiceAccountToken"] is False


# Its submission ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def submitted(api_server: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Run, Any]]:
    """Yield a run and its driver's pod, as spark-submit has created it in a namespace for restricted pods."""
    from tests.kubernetes.namespaces import RESTRICTED, make_namespace, remove_namespace

    cluster = api_server.as_user()
    namespace = make_namespace(cluster, RESTRICTED)
    values = together(
        EVERYTHING, nested("fullnameOverride", "p" * 33), nested("analytics.priorityClassName", "")
    )
    rendered = render(values, namespace=namespace)
    cluster.apply(rendered.of("ServiceAccount"), "--namespace", namespace)
    run = Run(f"{'p' * 33}-analytics-{SECONDS}", rendered.of("ScheduledSparkApplication")[0])
    run.submit(cluster, namespace, tmp_path_factory.mktemp("spark"))
    eventually(lambda: run.driver in cluster.api.names(cluster.api.resource("pods"), namespace))
    yield run, cluster.get("pods", run.driver, namespace)
    remove_namespace(cluster, namespace)


def test_driver_starts_the_job_with_its_arguments(submitted: tuple[Run, Any]) -> None:
    run, pod = submitted
    (container,) = pod["spec"]["containers"]
    application = run.scheduled["spec"]["template"]
    assert container["image"] == application["image"]
    assert container["args"][0] == "driver"
    at = container["args"].index("local:///opt/penstock/analytics.py")
    assert container["args"][at + 1 :] == application["arguments"]
    env = {each["name"]: each for each in container["env"]}
    assert len(env) == len(container["env"])
    assert env["RUN_NAME"]["valueFrom"]["fieldRef"]["fieldPath"] == f"metadata.labels['{APP_NAME}']"
    assert env["SPARK_LOCAL_DIRS"]["value"] == "/tmp"
    assert {"REDIS_URL", "SPARK_DRIVER_BIND_ADDRESS", "MORE"} <= env.keys()


def test_driver_has_the_volumes_labels_and_limits_of_the_values(submitted: tuple[Run, Any]) -> None:
    run, pod = submitted
    (container,) = pod["spec"]["containers"]
    mounts = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
    assert (mounts["/output"], mounts["/tmp"], mounts["/more"]) == ("output", "spark-local-dir-tmp", "more")
    assert pod["spec"]["serviceAccountName"] == f"{'p' * 33}-analytics"
    assert pod["metadata"]["labels"][COMPONENT] == "analytics"
    assert pod["metadata"]["labels"][APP_NAME] == run.name
    assert pod["metadata"]["annotations"]["note"] == "of the pod"
    assert container["resources"]["limits"] == {"cpu": "2", "memory": "4Gi"}
    assert ("spark-ui", 4040) in [(each["name"], each["containerPort"]) for each in container["ports"]]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_executors_have_the_label_of_their_policy(submitted: tuple[Run, Any], tmp_path: Path) -> None:
    """Check that the label of the object, which the operator copies to all pods, does not win."""
    run, _ = submitted
    conf = run.conf("shop", tmp_path)
    assert conf[f"spark.kubernetes.executor.label.{COMPONENT}"] == "analytics-executor"
    assert conf[f"spark.kubernetes.driver.label.{COMPONENT}"] == "analytics"
