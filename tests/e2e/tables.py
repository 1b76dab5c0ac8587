"""Copy the output of the analytics job out of its volume, and read its Delta tables without Spark."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from tests.e2e.images import Images
from tests.e2e.pods import pod, run_in, wait_ready
from tests.e2e.release import Release

MOUNT, FOLDER = "/output", "analytics"  # the default of analytics.output.folder
# prints the folder as a tar archive in base64, since kubectl's output is text here
PACK = """
import base64, io, sys, tarfile
packed = io.BytesIO()
with tarfile.open(fileobj=packed, mode="w:gz") as archive:
    archive.add(sys.argv[1], ".")
print(base64.b64encode(packed.getvalue()).decode())
"""


@dataclass(frozen=True)
class Output:
    """A copy of the job's output."""

    folder: Path

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Return all rows of a table, such as gold/deaths."""
        found: list[dict[str, Any]] = DeltaTable(str(self.folder / table)).to_pyarrow_table().to_pylist()
        return found

    def files(self, folder: str) -> list[Path]:
        """Return all files below a folder."""
        return [path for path in (self.folder / folder).rglob("*") if path.is_file()]

    @property
    def report(self) -> dict[str, Any]:
        """Return the newest report."""
        found: dict[str, Any] = json.loads((self.folder / "reports" / "latest.json").read_text())
        return found


def copied(release: Release, images: Images, claim: str, folder: Path) -> Output:
    """Copy the output in a claim into a folder, through a pod that mounts it."""
    reader = pod("reader", images.of("analytics"), command=("sleep", "120"))
    reader["spec"]["volumes"].append({"name": "output", "persistentVolumeClaim": {"claimName": claim}})
    mounts = reader["spec"]["containers"][0]["volumeMounts"]
    mounts.append({"name": "output", "mountPath": MOUNT, "readOnly": True})
    release.apply(reader)
    wait_ready(release.cluster, release.namespace, "reader")
    where = (release.cluster, release.namespace, "reader")
    text = run_in(*where, "python", "-c", PACK, f"{MOUNT}/{FOLDER}")
    release.kubectl("delete", "pod", "reader", "--grace-period=1", "--timeout=60s")
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(text))) as archive:
        archive.extractall(folder / "output", filter="data")
    return Output(folder / "output")
