"""The command on docs/chart.md that imports the output of an older version, by a Job made of the CronJob."""

from __future__ import annotations

import subprocess
from pathlib import Path

from services.analytics.__main__ import import_command
from tests.chart.chart import Values
from tests.chart.release import Release
from tests.docs.bench import commands
from tools.kubernetes.programs import find

# an existing claim: its finalizer would need a controller, which is absent here
SUSPENDED: Values = {
    "fullnameOverride": "penstock",
    "analytics": {"enabled": True, "suspend": True, "output": {"existingClaim": "theirs"}},
}


def test_job_of_the_page_imports_the_old_output(release: Release, tmp_path: Path) -> None:
    release.install(SUSPENDED)
    (line,) = [each.line for each in commands("docs/chart.md", "## Analytics") if "create job" in each.line]
    (tmp_path / "kubectl").symlink_to(find("kubectl"))
    environment = release.cluster.environment
    environment = {**environment, "PATH": f"{tmp_path}:{environment['PATH']}"}
    named = line.replace("--namespace queues", f"--namespace {release.namespace}")
    subprocess.run(["bash", "-euo", "pipefail", "-c", named], env=environment, check=True)
    job = release.get("jobs", "import")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    word, *words = container["args"]
    found = import_command.make_context(word, list(words), auto_envvar_prefix=None).params
    assert (word, found["output"], found["old_output"]) == ("import", "/output/analytics", "/output")
    assert {"name": "output", "mountPath": "/output"} in container["volumeMounts"]
    # deleted with its namespace, it would wait for a controller that releases its pods
    release.cluster.kubectl("delete", "job", "import", "--namespace", release.namespace)
