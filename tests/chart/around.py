"""A parent chart that has this chart as a dependency, once or with aliases."""

from __future__ import annotations

import shutil
from pathlib import Path

import yaml

from tests.chart.chart import CHART, NAMESPACE, RELEASE, Rendered, Values, helm, index


class Around:
    """A folder with a parent chart; `values` are its values.yaml."""

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
        """Render the chart. Raises Refused."""
        words = ("template", RELEASE, str(self.path), "--namespace", NAMESPACE, *flags)
        return Rendered(index(helm(words), NAMESPACE))
