"""The part of the Spark operator that tests need: its definition, and how it submits a run, by `spark-submit`.

The operator itself cannot be had for the tests. `submit` passes to spark-submit what release 2.5 of the operator passes
for a SparkApplication whose pods have templates; for such pods it changes nothing afterwards.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from tests.kubernetes.cluster import Cluster, Document
from tests.servers import eventually

KIND = "scheduledsparkapplications"
DEFINITION: Document = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
DEFINITIONS = "customresourcedefinitions"
APP_NAME = "sparkoperator.k8s.io/app-name"  # a label of its pods
CONTAINERS = {"driver": "spark-kubernetes-driver", "executor": "spark-kubernetes-executor"}
# settings of Spark by fields of driver and executor
FIELDS = {
    "instances": "spark.{}.instances",
    "cores": "spark.{}.cores",
    "coreRequest": "spark.kubernetes.{}.request.cores",
    "coreLimit": "spark.kubernetes.{}.limit.cores",
    "memory": "spark.{}.memory",
    "memoryOverhead": "spark.{}.memoryOverhead",
    "serviceAccount": "spark.kubernetes.authenticate.{}.serviceAccountName",
}
SUBMIT_S = 120.0


@contextmanager
def defined(cluster: Cluster) -> Iterator[None]:
    """Define ScheduledSparkApplications, and delete the definition afterwards with all objects; keep another's."""
    name = DEFINITION["metadata"]["name"]
    if name in cluster.api.names(cluster.api.resource(DEFINITIONS)):
        yield
        return
    cluster.apply([DEFINITION])
    try:
        eventually(lambda: KIND in {each.plural for each in cluster.api.resources()})
        yield
    finally:
        cluster.delete(DEFINITIONS, name)


@dataclass(frozen=True)
class Run:
    """A SparkApplication that the operator makes of a ScheduledSparkApplication; `name` is its name."""

    name: str
    scheduled: Document

    @property
    def driver(self) -> str:
        """Return the name of the driver's pod."""
        return f"{self.name}-driver"

    def submit(self, cluster: Cluster, namespace: str, folder: Path) -> None:
        """Create the driver's pod. `folder` is for files. Raises AssertionError with the log of spark-submit."""
        folder.mkdir(parents=True, exist_ok=True)
        server = cluster.kubectl(
            "config", "view", "--minify", "--output=jsonpath={.clusters[0].cluster.server}"
        )
        words = ["--master", f"k8s://{server}", "--deploy-mode", self._spec["mode"], "--name", self.name]
        for name, value in self.conf(namespace, folder).items():
            words += ["--conf", f"{name}={value}"]
        words += [self._spec["mainApplicationFile"], *self._spec["arguments"]]
        spark = find_spec("pyspark")
        assert spark
        assert spark.origin
        home = Path(spark.origin).parent
        environment = {**os.environ, **cluster.environment, "SPARK_HOME": str(home)}
        command = [str(home / "bin" / "spark-submit"), *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SUBMIT_S)
        assert done.returncode == 0, done.stderr[-4000:]

    def conf(self, namespace: str, folder: Path) -> dict[str, Any]:
        """Return all settings of Spark, in the order in which later ones win, and write the templates of pods."""
        spec = self._spec
        conf = {
            "spark.kubernetes.namespace": namespace,
            "spark.kubernetes.container.image": spec["image"],
            "spark.kubernetes.container.image.pullPolicy": spec["imagePullPolicy"],
            "spark.kubernetes.submission.waitAppCompletion": "false",
            **spec["sparkConf"],
            "spark.kubernetes.driver.pod.name": self.driver,
        }
        for part in ("driver", "executor"):
            conf |= self._part(part, spec[part])
            template = folder / f"{part}.yaml"
            template.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", **spec[part]["template"]}))
            conf[f"spark.kubernetes.{part}.podTemplateFile"] = str(template)
            conf[f"spark.kubernetes.{part}.podTemplateContainerName"] = CONTAINERS[part]
        return conf

    def _part(self, part: str, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of the driver or executors, whose labels win over those of the object."""
        conf = {setting.format(part): own[field] for field, setting in FIELDS.items() if field in own}
        labels = {APP_NAME: self.name, "sparkoperator.k8s.io/launched-by-spark-operator": "true"}
        labels |= {**self.scheduled["metadata"].get("labels", {}), **own.get("labels", {})}
        conf |= {f"spark.kubernetes.{part}.label.{name}": value for name, value in labels.items()}
        return conf

    @property
    def _spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = self.scheduled["spec"]["template"]
        return spec
