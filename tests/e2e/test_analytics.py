"""The analytics job runs in a cluster: alone, with executor pods, and as the Spark operator submits it.

The tests of this file share one release and run in order (docs/analytics.md, "In a cluster").
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.images import Images
from tests.e2e.release import FULL, QUEUES, Release
from tests.e2e.released import definitions, released
from tests.e2e.steps import step
from tests.e2e.tables import Output, copied
from tests.kubernetes.cluster import Cluster, CommandFailed
from tests.kubernetes.spark_operator import KIND, Run, defined
from tests.operator.resource_documents import queue
from tests.servers import eventually

__all__ = ["definitions"]

JOB_S = 720.0
LETTERS = 40  # messages that expire before each run
ALONE = {"edges": {name: {"enabled": False} for name in ("pubsub", "rqp", "ring")}}
DRIVER = {"requests": {"cpu": "200m", "memory": "512Mi"}, "limits": {"cpu": "2", "memory": "2Gi"}}
# the Spark operator requests all of the limit
SMALL_DRIVER = {"requests": {"cpu": "200m"}, "limits": {"cpu": "2", "memory": "1500Mi"}}
EXECUTORS = {"enabled": True, "cpuRequest": "100m", "memory": "512m", "memoryOverhead": "512m"}
CLAIM = f"{FULL}-analytics"
COMPONENT = "app.kubernetes.io/component"
GAUGE = "metrics_penstock_analytics_driver_jvm_heap_used_Value"


@dataclass
class Seen:
    """What was seen while a job ran: names of executor pods, and metrics of Spark."""

    executors: set[str] = field(default_factory=set)
    metrics: set[str] = field(default_factory=set)

    def look(self, release: Release) -> None:
        for each in pods_of(release, "analytics-executor"):
            if runs(each):
                self.executors.add(each["metadata"]["name"])
        for each in pods_of(release, "analytics"):
            if runs(each) and not self.metrics:
                self.metrics = metrics_of(release, each["metadata"]["name"])


def settings(images: Images, **analytics: Any) -> dict[str, Any]:
    """Return settings of a release with one edge that reports its figures every second."""
    image = {"repository": images.repository("analytics"), "tag": images.tag}
    output = {"size": "1Gi", "accessModes": ["ReadWriteMany"]}
    job = {"enabled": True, "image": image, "suspend": True, "output": output, "resources": DRIVER}
    edges = {**ALONE["edges"], "tmq": {"settings": {"store": {"sample_s": 1}}}}
    return {"edges": edges, "analytics": {**job, **analytics}, "console": {"enabled": False}}


@pytest.fixture(scope="module")
def release(cluster: Cluster, images: Images, definitions: None) -> Iterator[Release]:
    with released(cluster, images) as found:
        found.install(**settings(images))
        found.apply(queue("brief", messageTTL="1s"))
        found.wait_ready(QUEUES)
        yield found


def let_die(release: Release, number: int, before: int = 0) -> None:
    """Send a message through an edge, then let `number` messages become dead letters."""
    assert ": sent and received" in release.test()
    lines = "".join(f"message {each}\n" for each in range(number))
    words = ("exec", "--stdin", f"deployment/{FULL}-tmq", "--", "penstock", "put", "brief", "--lines")
    release.cluster.kubectl("--namespace", release.namespace, *words, given=lines)
    letters = ("dead", "list", "brief", "--json", "-n", "0")
    eventually(lambda: len(release.penstock(*letters).splitlines()) == before + number, 60)


def run_job(release: Release, name: str) -> Seen:
    """Run the job with `kubectl create job`; return what was seen during the run."""
    seen = Seen()
    with step(f"the job {name}"):
        release.kubectl("create", "job", f"--from=cronjob/{CLAIM}", name)
        end = time.monotonic() + JOB_S
        while not is_over(release, name):
            assert time.monotonic() < end, release.kubectl("logs", f"job/{name}")
            seen.look(release)
            time.sleep(0.5)
    return seen


def is_over(release: Release, name: str) -> bool:
    status = release.cluster.get("job", name, release.namespace).get("status", {})
    ends = [each["type"] for each in status.get("conditions", ()) if each["status"] == "True"]
    assert "Failed" not in ends, release.kubectl("logs", f"job/{name}", "--tail=50")
    return "Complete" in ends


def run_submitted(release: Release, run: Run, folder: Path) -> Seen:
    """Submit a run as the Spark operator does; return what was seen until the driver's pod has succeeded."""
    seen = Seen()
    with step(f"the run {run.name}"):
        run.submit(release.cluster, release.namespace, folder)
        end = time.monotonic() + JOB_S
        while (phase := phase_of(release, run.driver)) != "Succeeded":
            assert phase != "Failed", release.kubectl("logs", run.driver, "--tail=50")
            assert time.monotonic() < end, release.kubectl("logs", run.driver, "--tail=50")
            seen.look(release)
            time.sleep(0.5)
    return seen


def phase_of(release: Release, name: str) -> str:
    return str(release.cluster.get("pod", name, release.namespace)["status"].get("phase"))


def run_of(release: Release, name: str) -> str:
    """Return the identifier of a Job's run."""
    return f"{name}-{release.cluster.get('job', name, release.namespace)['metadata']['uid']}"


def pods_of(release: Release, component: str) -> list[dict[str, Any]]:
    """Return the pods of a component; executors are created by Spark."""
    pods = release.cluster.items("pods", release.namespace)
    return [each for each in pods if each["metadata"].get("labels", {}).get(COMPONENT) == component]


def runs(each: dict[str, Any]) -> bool:
    return bool(each["status"].get("phase") == "Running")


def metrics_of(release: Release, name: str) -> set[str]:
    """Return the names of the driver's metrics, read through the API server; none while it does not serve them."""
    path = f"/api/v1/namespaces/{release.namespace}/pods/{name}:4040/proxy/metrics/prometheus"
    try:
        lines = release.cluster.kubectl("get", "--raw", path).splitlines()
    except CommandFailed:
        return set()
    # it answers with a text while Spark starts
    return {line.partition("{")[0] for line in lines if line.startswith("metrics_")}


def told(release: Release) -> dict[str, Any]:
    """Return the report in the store, read through a pod of an edge."""
    found: dict[str, Any] = json.loads(release.penstock("report", "--json"))
    return found


def check_dead(output: Output, letters: int) -> None:
    """Check by another engine that the tables have each letter once."""
    bronze = output.rows("bronze/dead")
    assert len({(row["stream"], row["id"]) for row in bronze}) == len(bronze) == letters
    assert sum(row["count"] for row in output.rows("gold/deaths")) == letters


def test_the_job_runs_alone_and_its_report_is_read_back(
    release: Release, images: Images, tmp_path: Path
) -> None:
    let_die(release, LETTERS)
    seen = run_job(release, "alone")
    assert (seen.executors, seen.metrics) == (set(), set())
    report = told(release)
    assert (report["run"], report["totals"]["dead"]) == (run_of(release, "alone"), LETTERS)
    assert report["totals"]["in"] >= 1
    output = copied(release, images, CLAIM, tmp_path)
    assert output.report == report
    check_dead(output, LETTERS)
    assert output.rows("gold/traffic")


def test_the_job_runs_on_two_executors_and_its_report_is_read_back(
    release: Release, images: Images, tmp_path: Path
) -> None:
    more = {"metrics": {"enabled": True}, "eventLog": True}
    release.install("upgrade", **settings(images, executors=EXECUTORS, **more))
    let_die(release, LETTERS, LETTERS)
    seen = run_job(release, "shared")
    assert len(seen.executors) == 2
    assert GAUGE in seen.metrics
    report = told(release)
    assert (report["run"], report["totals"]["dead"]) == (run_of(release, "shared"), 2 * LETTERS)
    output = copied(release, images, CLAIM, tmp_path)
    assert output.report == report
    check_dead(output, 2 * LETTERS)
    assert output.files("events")
    eventually(lambda: pods_of(release, "analytics-executor") == [], 60)


@pytest.fixture
def scheduled(release: Release, images: Images) -> Iterator[Run]:
    """Yield a run of the release's ScheduledSparkApplication; the release has the CronJob again afterwards."""
    own = {"mode": "scheduledSparkApplication", "resources": SMALL_DRIVER}
    with defined(release.cluster):
        release.install("upgrade", **settings(images, executors={**EXECUTORS, "instances": 1}, **own))
        try:
            found = release.cluster.get(KIND, CLAIM, release.namespace)
            yield Run(f"{CLAIM}-{time.time_ns()}", found)
        finally:  # helm cannot uninstall an object without its definition
            release.install("upgrade", **settings(images))


def test_the_spark_operator_runs_the_job_and_its_report_is_read_back(
    release: Release, images: Images, scheduled: Run, tmp_path: Path
) -> None:
    """Check a run that is submitted as by the operator, which cannot be had here: Spark makes all its pods."""
    let_die(release, LETTERS, 2 * LETTERS)
    seen = run_submitted(release, scheduled, tmp_path / "templates")
    assert len(seen.executors) == 1
    report = told(release)
    assert (report["run"], report["totals"]["dead"]) == (scheduled.name, 3 * LETTERS)
    output = copied(release, images, CLAIM, tmp_path)
    assert output.report == report
    check_dead(output, 3 * LETTERS)
    eventually(lambda: pods_of(release, "analytics-executor") == [], 60)
    release.kubectl("delete", "pod", scheduled.driver, "--timeout=60s")
