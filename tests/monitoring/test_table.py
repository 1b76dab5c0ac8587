"""docs/metrics.md lists exactly the metrics in the code; test_panels.py checks that processes export them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path
from urllib.request import urlopen

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from services.kit.metrics import build_measures
from tests.monitoring.prometheus import Target
from tools.kubernetes.programs import find
from tools.metrics_docs import Row, page, rows

TABLE = Path(__file__).parents[2] / "docs" / "metrics.md"
ROWS = {row.measure.name: row for row in rows()}
OF_CONTROL = (  # exporters other than edges
    "the operator",
    "the console",
    "the operator, the console",
    build_measures.WHO,
)
UNBORN = {
    # starts with an invalid reply to a request of the edge: tests/rqp/cast/test_damage.py
    "penstock_rqp_cast_faults_total",
    # of listeners with TLS, which no process here has: tests/kit/net/test_tls.py
    "penstock_certificate_not_after_time_seconds",
}
OF_TARGETS = {"le"}  # of buckets


def scrape(target: Target) -> str:
    with urlopen(f"http://{target.host}:{target.port}/metrics", timeout=20) as answer:
        return str(answer.read().decode())


def families(text: str) -> dict[str, Metric]:
    """Return metrics by their name in the table."""
    found = text_string_to_metric_families(text)
    return {f"{one.name}_total" if one.type == "counter" else one.name: one for one in found}


def check(name: str, family: Metric) -> None:
    """Check a metric against the table."""
    row: Row = ROWS[name]
    assert family.type == str(row.measure.kind), name
    for sample in family.samples:
        assert set(sample.labels) - OF_TARGETS == set(row.labels), (name, sample)


def test_table_is_current() -> None:
    assert TABLE.read_text() == page(TABLE)


def test_metric_names_are_unique() -> None:
    assert len(ROWS) == len(rows()) > 70


def lint(texts: Iterable[str]) -> None:
    """Run Prometheus' linter on names, once for each metric."""
    metrics = {block.split()[0]: block for text in texts for block in text.split("# HELP ")[1:]}
    text = "".join(f"# HELP {block}" for block in metrics.values())
    done = subprocess.run(
        [find("promtool"), "check", "metrics"], input=text, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
