"""The analytics job: the settings of its pod and of its executors (docs/chart.md)."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from services.analytics.__main__ import run_command
from services.analytics.settings import Settings
from tests.chart.chart import FULL, NAME, NAMESPACE, Rendered, Values, nested, render
from tests.chart.flows import COMPONENT, Flows, selects
from tests.chart.switches import EXECUTORS, EXTERNAL

CRONJOB = f"CronJob/{NAME}-analytics"
RUN = "$(RUN_NAME)-$(RUN_UID)"
ON: Values = nested("analytics.enabled", True)
METRICS: Values = nested("analytics.metrics.enabled", True)
OUTPUT = "/output/analytics"


def flags(rendered: Rendered) -> dict[str, Any]:
    """Return the flags as the job parses them."""
    command, *words = (word.replace("$$", "$") for word in rendered.container(CRONJOB)["args"])
    assert command == "run"
    context = run_command.make_context("run", words, auto_envvar_prefix=None)
    return dict(context.params)


@pytest.fixture(autouse=True)
def _a_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:6379")


def test_defaults_are_those_of_the_job() -> None:
    found = flags(render(ON))
    own = {"output": OUTPUT, "run_id": RUN, "master": "local[*]", "driver_memory": "2048m"}  # half of 4Gi
    of_job = run_command.make_context("run", [f"--output={OUTPUT}"], auto_envvar_prefix=None).params
    assert found == {**of_job, **own}


def test_values_reach_the_job() -> None:
    fields = {
        "bodies": 512,
        "redact": [r"\d{16}$", "a $(POD_NAME) $$"],
        "retentionDays": 30,
        "weekDays": 2,
        "top": 5,
        "objective": 0.99,
        "failOnDataLoss": False,
        "reportHours": 168,
        "clockSlackSeconds": 90,
        "maintenanceSeconds": 2.5,
        "patienceSeconds": 600,
    }
    own = {"job": fields, "arguments": ["--top=6"], "sparkConf": {"spark.local.dir": "/a b"}}
    found = flags(render(ON, {"analytics": own}, nested("analytics.output.folder", "a/b")))
    assert (found["bodies"], found["objective"], found["output"]) == ("512", 0.99, "/output/a/b")
    assert found["redact"] == (r"\d{16}$", "a $(POD_NAME) $$")
    assert (found["retention_days"], found["week_days"]) == (30, 2)
    assert (found["report_hours"], found["clock_slack"], found["fail_on_data_loss"]) == (168, 90, False)
    assert (found["maintenance_s"], found["patience_s"]) == (2.5, 600.0)
    assert found["top"] == 6  # later flags override it
    assert found["conf"] == ("spark.local.dir=/a b",)
    Settings(store="redis://127.0.0.1", output=OUTPUT, run="r", conf=found["conf"])


@pytest.mark.parametrize(("limit", "memory"), [("3G", "1430m"), ("2000Mi", "1000m"), (None, "2g")])
def test_heap_is_half_of_the_limit(limit: str | None, memory: str) -> None:
    rendered = render(
        ON, nested("analytics.resources", {"requests": {"memory": None}, "limits": {"memory": limit}})
    )
    assert flags(rendered)["driver_memory"] == memory


def test_chart_has_all_options_of_the_job() -> None:
    """Check that values set all options, except those of the store and of runs by hand or without end."""
    names = {word.split("=")[0] for word in render(ON).container(CRONJOB)["args"]} - {"run"}
    own = {
        option for each in run_command.params for option in each.opts if not getattr(each, "hidden", False)
    }
    by_hand = {"--accept-clock", "--accept-store", "--recompute", "--continuous"}
    without_default = {"--redact", "--conf"}
    assert own - names - {"--help"} == {"--store", *without_default, *by_hand}
    assert names - own == set()


def test_retries_of_a_job_are_one_run() -> None:
    """Check that retries of a Job count as one run, identified by its uid, as its name can be reused."""
    env = {each["name"]: each for each in render(ON).container(CRONJOB)["env"]}
    paths = [env[name]["valueFrom"]["fieldRef"]["fieldPath"] for name in ("RUN_NAME", "RUN_UID")]
    assert paths == [
        f"metadata.labels['batch.kubernetes.io/{name}']" for name in ("job-name", "controller-uid")
    ]
    longest = f"{'j' * 63}-{uuid.uuid4()}"
    Settings(store="redis://127.0.0.1", output=OUTPUT, run=longest)


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


# Output and schedule --------------------------------------------------------------------------------------


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


def test_bucket_is_the_output_as_it_is() -> None:
    assert flags(render(ON, nested("analytics.output.url", "s3a://bucket/f/")))["output"] == "s3a://bucket/f"


# Metrics and event log --------------------------------------------------------------------------------------


def test_metrics_of_spark_are_scraped_while_it_runs() -> None:
    rendered = render(ON, METRICS, nested("monitoring.podMonitor.enabled", True))
    conf = dict(each.split("=", 1) for each in flags(rendered)["conf"])
    assert (conf["spark.ui.enabled"], conf["spark.ui.killEnabled"]) == ("true", "false")
    assert conf["spark.metrics.conf.*.sink.prometheusServlet.path"] == "/metrics/prometheus"
    assert rendered.container(CRONJOB)["ports"] == [{"name": "spark-ui", "containerPort": 4040}]
    monitor = rendered[f"PodMonitor/{NAME}-analytics"]["spec"]
    assert selects(monitor["selector"], Flows(rendered).pods["analytics"])
    assert not selects(rendered[f"PodMonitor/{NAME}"]["spec"]["selector"], Flows(rendered).pods["analytics"])
    paths = [(each["port"], each["path"]) for each in monitor["podMetricsEndpoints"]]
    assert paths == [("spark-ui", f"/metrics/{path}prometheus") for path in ("", "executors/")]


def test_metrics_are_scraped_beside_a_service_monitor_too() -> None:
    labels = {"enabled": True, "additionalLabels": {"release": "p"}, "interval": "5s"}
    rendered = render(ON, METRICS, nested("monitoring.serviceMonitor", labels))
    monitor = rendered[f"PodMonitor/{NAME}-analytics"]
    assert monitor["metadata"]["labels"]["release"] == "p"
    assert {each["interval"] for each in monitor["spec"]["podMetricsEndpoints"]} == {"5s"}
    assert f"PodMonitor/{NAME}-analytics" not in render(ON, METRICS)


def test_only_scrapers_reach_the_web_page_of_spark() -> None:
    team = [{"podSelector": {"matchLabels": {"may": "yes"}}}]
    flows = Flows(render(ON, METRICS, nested("networkPolicy.metricsFrom", team)))
    driver = flows.pods["analytics"]
    assert flows.passes({"may": "yes"}, driver, 4040)
    assert not flows.passes({COMPONENT: "else"}, driver, 4040)
    without = Flows(render(ON))
    assert not without.passes({"may": "yes"}, without.pods["analytics"], 4040)


@pytest.mark.parametrize(
    ("output", "folder"),
    [({}, "file:///output/analytics/events"), ({"url": "s3a://bucket/f"}, "s3a://bucket/f/events")],
)
def test_event_log_is_in_the_output(output: Values, folder: str) -> None:
    rendered = render(ON, nested("analytics.eventLog", True), nested("analytics.output", output))
    assert flags(rendered)["conf"] == (f"spark.eventLog.dir={folder}", "spark.eventLog.enabled=true")
