"""A chart that has ours as a dependency, once or by aliases."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import yaml

from tests.chart.chart import CHART, NAMESPACE, RELEASE, Refused, Rendered, Values, index
from tools.kubernetes.programs import find


class Around:
    """A folder with such a chart; `values` stand in its values.yaml."""

    def __init__(self, folder: Path, values: Values, *aliases: str) -> None:
        self.path = folder
        one = {"name": "penstock", "version": yaml.safe_load((CHART / "Chart.yaml").read_text())["version"]}
        many = [{**one, "alias": alias, "condition": f"{alias}.enabled"} for alias in aliases]
        dependencies = many or [{**one, "condition": "penstock.enabled"}]
        chart = {"apiVersion": "v2", "name": "around", "version": "1.0.0", "dependencies": dependencies}
        (folder / "Chart.yaml").write_text(yaml.safe_dump(chart))
        (folder / "values.yaml").write_text(yaml.safe_dump(values))
        shutil.copytree(CHART, folder / "charts" / "penstock")

    def render(self, *flags: str) -> Rendered:
        """Raises Refused."""
        command = [find("helm"), "template", RELEASE, str(self.path), "--namespace", NAMESPACE, *flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise Refused(done.stderr)
        return Rendered(index(done.stdout, NAMESPACE))
