"""The analytics job runs in a cluster, alone and with executor pods (docs/analytics.md, "In a cluster").

The tests of this file share one release and run in order.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.images import Images
from tests.e2e.pods import pod, run_in, wait_ready
from tests.e2e.release import FULL, QUEUES, Release
from tests.e2e.released import definitions, released
from tests.e2e.steps import step
from tests.kubernetes.cluster import Cluster
from tests.operator.resource_documents import queue
from tests.servers import eventually

__all__ = ["definitions"]

JOB_S = 240.0
LETTERS = 40  # messages that expire before each run
ALONE = {"edges": {name: {"enabled": False} for name in ("pubsub", "rqp", "ring")}}
DRIVER = {"requests": {"cpu": "200m", "memory": "512Mi"}, "limits": {"cpu": "2", "memory": "2Gi"}}
EXECUTORS = {"enabled": True, "cpuRequest": "100m", "memory": "512m", "memoryOverhead": "512m"}
CLAIM = f"{FULL}-analytics"
# counts the rows of a table or of the archive, independently of the job
COUNT = """
import sys
from pathlib import Path
import pyarrow.parquet as pq
print(sum(pq.read_metadata(path).num_rows for path in Path("/output", sys.argv[1]).rglob("*.parquet")))
"""


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


def run_job(release: Release, name: str) -> set[str]:
    """Run the job with `kubectl create job`; return the names of executor pods seen during the run."""
    seen: set[str] = set()
    with step(f"the job {name}"):
        release.kubectl("create", "job", f"--from=cronjob/{CLAIM}", name)
        end = time.monotonic() + JOB_S
        while not is_over(release, name):
            assert time.monotonic() < end, release.kubectl("logs", f"job/{name}")
            seen |= {each["metadata"]["name"] for each in executors(release) if runs(each)}
            time.sleep(0.5)
    return seen


def is_over(release: Release, name: str) -> bool:
    status = release.cluster.get("job", name, release.namespace).get("status", {})
    ends = [each["type"] for each in status.get("conditions", ()) if each["status"] == "True"]
    assert "Failed" not in ends, release.kubectl("logs", f"job/{name}", "--tail=50")
    return "Complete" in ends


def run_of(release: Release, name: str) -> str:
    """Return the identifier of a Job's run."""
    return f"{name}-{release.cluster.get('job', name, release.namespace)['metadata']['uid']}"


def executors(release: Release) -> list[dict[str, Any]]:
    """Return the pods created by Spark."""
    pods = release.cluster.items("pods", release.namespace)
    component = "app.kubernetes.io/component"
    return [each for each in pods if each["metadata"]["labels"].get(component) == "analytics-executor"]


def runs(each: dict[str, Any]) -> bool:
    return bool(each["status"].get("phase") == "Running")


def told(release: Release) -> dict[str, Any]:
    """Return the report in the store, read through a pod of an edge."""
    found: dict[str, Any] = json.loads(release.penstock("report", "--json"))
    return found


def read_back(release: Release, images: Images, *paths: str) -> tuple[dict[str, Any], list[int]]:
    """Return the report in the volume, and the number of rows below each path."""
    reader = pod("reader", images.of("analytics"), command=("sleep", "120"))
    reader["spec"]["volumes"].append({"name": "output", "persistentVolumeClaim": {"claimName": CLAIM}})
    mounts = reader["spec"]["containers"][0]["volumeMounts"]
    mounts.append({"name": "output", "mountPath": "/output", "readOnly": True})
    release.apply(reader)
    wait_ready(release.cluster, release.namespace, "reader")
    where = (release.cluster, release.namespace, "reader")
    report = json.loads(run_in(*where, "cat", "/output/reports/latest.json"))
    rows = [int(run_in(*where, "python", "-c", COUNT, path)) for path in paths]
    release.kubectl("delete", "pod", "reader", "--grace-period=1", "--timeout=60s")
    return report, rows


def test_the_job_runs_alone_and_its_report_is_read_back(release: Release, images: Images) -> None:
    let_die(release, LETTERS)
    assert run_job(release, "alone") == set()
    report = told(release)
    assert (report["run"], report["totals"]["dead"]) == (run_of(release, "alone"), LETTERS)
    assert report["totals"]["in"] >= 1
    kept, rows = read_back(release, images, "archive/dead", "aggregates/traffic")
    assert kept == report
    assert rows[0] == LETTERS
    assert rows[1] >= 1


def test_the_job_runs_on_two_executors_and_its_report_is_read_back(release: Release, images: Images) -> None:
    release.install("upgrade", **settings(images, executors=EXECUTORS))
    let_die(release, LETTERS, LETTERS)
    assert len(run_job(release, "shared")) == 2
    report = told(release)
    assert (report["run"], report["totals"]["dead"]) == (run_of(release, "shared"), 2 * LETTERS)
    kept, rows = read_back(release, images, "archive/dead", "aggregates/deaths")
    assert kept == report
    assert rows[0] == 2 * LETTERS
    assert rows[1] >= 1
    eventually(lambda: executors(release) == [], 60)
