"""The analytics job: the settings of its pod and of its executors (docs/chart.md)."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from services.analytics.__main__ import analytics
from services.analytics.settings import Settings, Shape
from tests.chart.chart import FULL, NAME, NAMESPACE, Rendered, Values, nested, render
from tests.chart.flows import COMPONENT, Flows
from tests.chart.switches import EXECUTORS, EXTERNAL, SHARED

CRONJOB = f"CronJob/{NAME}-analytics"
RUN = "$(RUN_NAME)-$(RUN_UID)"
ON: Values = nested("analytics.enabled", True)
SPARK: Values = {
    "analytics": {"enabled": True, "mode": "scheduledSparkApplication", "output": SHARED},
}


def flags(rendered: Rendered) -> dict[str, Any]:
    """Return the flags as the job parses them."""
    words = [word.replace("$$", "$") for word in rendered.container(CRONJOB)["args"]]
    context = analytics.make_context("analytics", words, auto_envvar_prefix=None)
    return dict(context.params)


@pytest.fixture(autouse=True)
def _a_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:6379")


def test_defaults_are_those_of_the_job() -> None:
    found, shape = flags(render(ON)), Shape()
    assert (found["bodies"], found["redact"], found["objective"]) == ("none", (), shape.objective)
    assert (found["late_hours"], found["week_days"], found["top"]) == (48, 7, 50)
    assert (found["retention_days"], found["fail_on_data_loss"]) == (0, True)
    assert (found["output"], found["run_id"], found["conf"]) == ("/output", RUN, ())
    assert (found["report_hours"], found["clock_slack"]) == (shape.report_hours, shape.clock_slack_s)
    assert (found["lock_s"], found["patience_s"]) == (120.0, 30.0)
    assert (found["master"], found["driver_memory"]) == ("local[*]", "2048m")  # of 4Gi


def test_values_reach_the_job() -> None:
    fields = {
        "bodies": 512,
        "redact": [r"\d{16}$", "a $(POD_NAME) $$"],
        "lateHours": 3,
        "retentionDays": 30,
        "weekDays": 2,
        "top": 5,
        "objective": 0.99,
        "failOnDataLoss": False,
        "reportHours": 168,
        "clockSlackSeconds": 90,
        "lockSeconds": 2.5,
        "patienceSeconds": 600,
    }
    own = {"job": fields, "arguments": ["--top=6"], "sparkConf": {"spark.local.dir": "/a b"}}
    found = flags(render(ON, {"analytics": own}))
    assert (found["bodies"], found["objective"]) == ("512", 0.99)
    assert found["redact"] == (r"\d{16}$", "a $(POD_NAME) $$")
    assert (found["late_hours"], found["retention_days"], found["week_days"]) == (3, 30, 2)
    assert (found["report_hours"], found["clock_slack"], found["fail_on_data_loss"]) == (168, 90, False)
    assert (found["lock_s"], found["patience_s"]) == (2.5, 600.0)
    assert found["top"] == 6  # later flags override it
    assert found["conf"] == ("spark.local.dir=/a b",)
    Settings(store="redis://127.0.0.1", output="/output", run="r", conf=found["conf"])


@pytest.mark.parametrize(("limit", "memory"), [("3G", "1430m"), ("2000Mi", "1000m"), (None, "2g")])
def test_heap_is_half_of_the_limit(limit: str | None, memory: str) -> None:
    rendered = render(
        ON, nested("analytics.resources", {"requests": {"memory": None}, "limits": {"memory": limit}})
    )
    assert flags(rendered)["driver_memory"] == memory


def test_chart_has_all_options_of_the_job() -> None:
    """Check that values set all options, except the chart's own, the store's, and those for a single run."""
    names = {word.split("=")[0] for word in render(ON).container(CRONJOB)["args"]}
    own = {option for each in analytics.params for option in each.opts if option != "--help"}
    once = {"--accept-clock", "--accept-store"}
    assert own - names == {
        "--store",
        "--redact",
        "--conf",
        *once,
    }  # of no log pattern or setting
    assert names - own == set()


def test_retries_of_a_job_are_one_run() -> None:
    """Check that retries of a Job count as one run, identified by its uid, as its name can be reused."""
    env = {each["name"]: each for each in render(ON).container(CRONJOB)["env"]}
    paths = [env[name]["valueFrom"]["fieldRef"]["fieldPath"] for name in ("RUN_NAME", "RUN_UID")]
    assert paths == [
        f"metadata.labels['batch.kubernetes.io/{name}']" for name in ("job-name", "controller-uid")
    ]
    longest = f"{'j' * 63}-{uuid.uuid4()}"
    Settings(store="redis://127.0.0.1", output="/output", run=longest)


def test_one_job_at_a_time_that_is_cleaned_up() -> None:
    spec = render(ON)[CRONJOB]["spec"]
    job = spec["jobTemplate"]["spec"]
    assert spec["concurrencyPolicy"] == "Forbid"
    assert (spec["successfulJobsHistoryLimit"], spec["failedJobsHistoryLimit"]) == (3, 3)
    assert (job["activeDeadlineSeconds"], job["backoffLimit"]) == (3600, 1)
    assert job["template"]["spec"]["restartPolicy"] == "Never"
    usage, drained = job["podFailurePolicy"]["rules"]
    assert (usage["action"], usage["onExitCodes"]["values"]) == ("FailJob", [2])
    assert drained["action"] == "Ignore"


def test_job_uses_the_store_as_edges_do() -> None:
    tls = nested("externalRedis.tls.existingSecret", "ca")
    rendered = render(ON, EXECUTORS, EXTERNAL, tls)
    edge = rendered.container(f"Deployment/{NAME}-tmq")
    own = rendered.container(CRONJOB)
    for each in edge["env"]:
        if each["name"] == "REDIS_URL":
            assert each in own["env"]
    (mount,) = [each for each in edge["volumeMounts"] if each["name"] == "store-tls"]
    assert mount in own["volumeMounts"]
    assert mount in rendered.executor()["spec"]["containers"][0]["volumeMounts"]


# Executors --------------------------------------------------------------------------------------------------


def test_driver_binds_its_pod_address() -> None:
    """Check that the driver binds its pod's address, which executors dial: 0.0.0.0 would be themselves."""
    conf = dict(each.split("=", 1) for each in flags(render(EXECUTORS))["conf"])
    assert conf["spark.driver.host"] == conf["spark.driver.bindAddress"] == "$(POD_IP)"
    assert conf["spark.executor.instances"] == "2"
    assert conf["spark.kubernetes.namespace"] == NAMESPACE
    assert "spark.kubernetes.executor.request.cores" not in conf
    assert "spark.kubernetes.executor.request.cores=200m" in flags(render(FULL))["conf"]


def test_driver_may_manage_pods_only() -> None:
    (rule,) = render(EXECUTORS)[f"Role/{NAME}-analytics"]["rules"]
    assert rule["resources"] == ["pods"]
    assert render(EXECUTORS).executor()["spec"]["automountServiceAccountToken"] is False


def test_executors_mount_the_output_as_the_driver() -> None:
    rendered = render(EXECUTORS)
    driver, own = rendered.pod(CRONJOB), rendered.executor()["spec"]
    for spec in (driver, own):
        assert {"name": "output", "mountPath": "/output"} in spec["containers"][0]["volumeMounts"]
        claim = {"name": "output", "persistentVolumeClaim": {"claimName": f"{NAME}-analytics"}}
        assert claim in spec["volumes"]


def test_policies_of_driver_and_executors() -> None:
    rendered = render(EXECUTORS)
    flows = Flows(rendered)
    driver, own = flows.pods["analytics"], rendered.executor()["metadata"]["labels"]
    redis, stranger = flows.pods["redis"], {COMPONENT: "else"}
    assert flows.passes(own, redis, 6379)
    for port in (7078, 7079):
        assert flows.passes(own, driver, port), port
        assert not flows.passes(stranger, driver, port), port
    for sender in (driver, own):
        assert flows.passes(sender, own, 7079)
    assert not flows.passes(stranger, own, 7079)
    assert not flows.passes(own, None, 6443)
    alone = Flows(render(ON))
    assert not alone.passes(own, alone.pods["analytics"], 7078)
    assert not alone.passes(alone.pods["analytics"], None, 443)


def test_driver_and_executors_reach_the_output() -> None:
    to = [{"ports": [{"port": 9000}], "to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]
    rendered = render(EXECUTORS, nested("analytics.networkPolicy.egress", to))
    flows = Flows(rendered)
    for labels in (flows.pods["analytics"], rendered.executor()["metadata"]["labels"]):
        assert flows.passes(labels, None, 9000)


# The Spark operator -----------------------------------------------------------------------------------------


def test_fields_of_the_spark_operator() -> None:
    """Check the fields of sparkoperator.k8s.io/v1beta2; they are not tested with the operator itself."""
    rendered = render(SPARK)
    spec = rendered[f"ScheduledSparkApplication/{NAME}-analytics"]["spec"]
    template = spec["template"]
    assert (template["type"], template["mode"], template["restartPolicy"]) == (
        "Python",
        "cluster",
        {"type": "Never"},
    )
    assert {"sparkVersion", "driver", "executor"} <= set(template)
    assert template["mainApplicationFile"] == "local:///opt/penstock/analytics.py"
    assert "--master=k8s://https://kubernetes.default.svc" in template["arguments"]
    assert not [each for each in template["arguments"] if each.startswith("--conf")]
    assert all(isinstance(value, str) for value in template["sparkConf"].values())
    assert rendered[f"ServiceAccount/{NAME}-analytics"]["automountServiceAccountToken"] is True
    for part in ("driver", "executor"):
        pod = template[part]
        assert pod["podSecurityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["readOnlyRootFilesystem"] is True
        assert {"name": "output", "mountPath": "/output"} in pod["volumeMounts"]
    volumes = {each["name"] for each in template["volumes"]}
    assert {each["name"] for each in template["driver"]["volumeMounts"]} <= volumes


def test_claim_gets_a_pod_at_once() -> None:
    """Check that a claim gets a pod at once, as helm waits for claims, which many storage classes bind to a pod."""
    rendered = render(ON)
    (place,) = [each for each in rendered.objects if each.startswith(f"Job/{NAME}-analytics-output-")]
    volumes = {each["name"]: each for each in rendered.pod(place)["volumes"]}
    assert volumes["output"]["persistentVolumeClaim"] == {"claimName": f"{NAME}-analytics"}
    another = render(ON, nested("analytics.image.tag", "2.0.0"))
    assert place not in another  # pods of a Job are immutable
    for output in ({"existingClaim": "there"}, {"url": "s3a://bucket/folder"}):
        found = render(ON, nested("analytics.output", output))
        assert [each for each in found.objects if "analytics-output" in each] == []


def test_schedule_is_passed_unchanged() -> None:
    values = nested("analytics", {"enabled": True, "schedule": "00\t09  * * 1-5/2"})
    assert render(values)[CRONJOB]["spec"]["schedule"] == "00\t09  * * 1-5/2"
