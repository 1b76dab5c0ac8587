"""Check what the project's wheel contains for Spark, and that others do not need it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from services.analytics.report.page import STYLE, TEMPLATE

ROOT = Path(__file__).parents[2]


def test_the_data_source_is_where_spark_looks(tmp_path: Path) -> None:
    """Check the top level, where Spark looks for modules whose names begin with pyspark_."""
    command = [sys.executable, "-P", "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "pyspark_redis_stream.py" in names
    assert "services/redis_stream/source.py" in names
    assert "services/analytics/spark/jars.lock" in names
    assert {f"services/analytics/report/{name}" for name in (TEMPLATE, STYLE)} <= {*names}


@pytest.mark.parametrize("name", ["edge", "operator", "local"])
def test_no_other_image_has_spark(name: str) -> None:
    locked = (ROOT / "requirements" / f"{name}.txt").read_text()
    assert not {"pyspark", "pyarrow", "pandas", "matplotlib"} & {
        line.partition("==")[0] for line in locked.splitlines()
    }
