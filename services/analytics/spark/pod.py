"""Start a container: the job, one of its executors, or a driver of Spark (`python -m services.analytics.spark.pod`).

Spark's scheduler starts executors of the same image with the word `executor` and describes them in the environment.
Programs that submit the job to a cluster (the Spark operator) use the word `driver` and arguments of `spark-submit`.
Imports nothing that takes time: a container's first process must handle SIGTERM before that.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from services.analytics.spark.ending import TERMINATED
from services.analytics.spark.nameless import name_user
from services.kit.startup import prepare_streams
from services.kit.startup_sigterm import exit_on_signals

BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
OPTION = "SPARK_JAVA_OPT_"  # followed by a number from 0
# flags of the backend, and the variables that hold their values
FLAGS = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}


def executor(environment: Mapping[str, str]) -> list[str]:
    """Return the command of an executor. Raises KeyError for a missing variable."""
    memory = environment["SPARK_EXECUTOR_MEMORY"]
    flags = [word for flag, name in FLAGS.items() for word in (flag, environment[name])]
    return [
        "java",
        *_options(environment),
        f"-Xms{memory}",
        f"-Xmx{memory}",
        "-cp",
        f"{_spark() / 'jars'}/*",
        BACKEND,
        *flags,
    ]


def driver(words: list[str], environment: Mapping[str, str]) -> list[str]:
    """Return the command of a driver in a pod made by Spark. Raises KeyError for a missing variable."""
    address = environment["SPARK_DRIVER_BIND_ADDRESS"]
    submit = str(_spark() / "bin" / "spark-submit")
    return [submit, "--conf", f"spark.driver.bindAddress={address}", "--deploy-mode", "client", *words]


def _options(environment: Mapping[str, str]) -> Iterator[str]:
    number = 0
    while option := environment.get(f"{OPTION}{number}"):
        yield option
        number += 1


def _spark() -> Path:
    """Return PySpark's folder, found without importing it."""
    found = find_spec("pyspark")
    if not found or not found.origin:
        sys.exit("penstock: PySpark is not installed")
    return Path(found.origin).parent


def main(words: list[str]) -> None:
    """Replace the process by the command of an executor or driver, or run the job."""
    name_user()
    if words and words[0] in ("executor", "driver"):
        try:
            command = executor(os.environ) if words[0] == "executor" else driver(words[1:], os.environ)
        except KeyError as missing:
            sys.exit(f"penstock: {words[0]}: {missing.args[0]} is not set; only Spark can start this command")
        os.execvp(command[0], command)  # Java handles SIGTERM itself
    exit_on_signals(TERMINATED)  # until Ending handles signals
    prepare_streams()
    from services.analytics.__main__ import analytics

    analytics(words)


if __name__ == "__main__":
    main(sys.argv[1:])
