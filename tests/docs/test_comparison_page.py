"""Check that README.md and docs/comparison.md quote the last full run of docs/benchmarks.md."""

from __future__ import annotations

import re

import pytest

from tests.tmq.process import ROOT

MEASURED = (
    (ROOT / "docs/benchmarks.md")
    .read_text()
    .partition("<!-- benchmarks:begin -->")[2]
    .partition("<!-- benchmarks:end -->")[0]
)
PAGE = (ROOT / "docs/comparison.md").read_text()
TABLES = {
    "README.md": (ROOT / "README.md").read_text().partition("\n## Performance\n")[2].partition("\n## ")[0],
    "docs/comparison.md": PAGE.partition("\n## Throughput\n")[2].partition("\n## ")[0],
}
NAMES = {  # name in these tables: first words of its row in docs/benchmarks.md
    "Penstock TMQ": "Penstock TMQ ",
    "raw XADD (redis-benchmark)": "raw XADD (redis-benchmark) ",
    "NATS JetStream as shipped": "NATS JetStream as shipped 2",
    "NATS JetStream, `sync_interval: always`": "NATS JetStream, sync_interval: always ",
    "RabbitMQ 3.10.8 quorum queue, one node": "RabbitMQ quorum queue 3.10.8 ",
}


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def measured(begins: str) -> list[str]:
    """Return puts and takes of 10 x 200 and of 50 x 1 without their ratios."""
    (row,) = [line for line in MEASURED.splitlines() if line.startswith(f"| {begins}")]
    return [cell.partition(" ")[0] for cell in cells(row)[1:5]]


@pytest.mark.parametrize("page", TABLES)
@pytest.mark.parametrize("name", NAMES)
def test_table_quotes_measured_values(page: str, name: str) -> None:
    (row,) = [line for line in TABLES[page].splitlines() if line.startswith(f"| {name} |")]
    assert cells(row)[1:5] == measured(NAMES[name])


@pytest.mark.parametrize("page", TABLES)
def test_no_row_is_without_a_measurement(page: str) -> None:
    rows = [line for line in TABLES[page].splitlines() if line.startswith("| ") and "---" not in line]
    assert {cells(row)[0] for row in rows} - {""} == set(NAMES)


def test_rates_of_single_requests_are_those_measured() -> None:
    said = re.search(
        r"JetStream as shipped does ([\d,]+) puts a second, a synced XADD ([\d,]+) and TMQ ([\d,]+)",
        " ".join(PAGE.split()),
    )
    assert said is not None
    rows = ("NATS JetStream as shipped", "raw XADD (redis-benchmark)", "Penstock TMQ")
    assert [float(each.replace(",", "")) / 1000 for each in said.groups()] == [
        float(measured(NAMES[row])[2]) for row in rows
    ]


def test_ratios_of_deliveries_are_those_measured() -> None:
    def times(to: str) -> float:
        found = re.search(
            rf"deliveries, 1 publisher to {to}: Penstock text / NATS core \| ([\d.]+) x", MEASURED
        )
        assert found is not None
        return float(found[1])

    assert "NATS core delivers three times as many" in " ".join(PAGE.split())
    assert round(1 / times("1 subscriber")) == 3
    assert times("100 subscribers") > 1
