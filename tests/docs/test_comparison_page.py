"""docs/comparison.md: its figures are those of README.md, where each run writes them anew."""

from __future__ import annotations

import re

import pytest

from tests.tmq.process import ROOT

README = (ROOT / "README.md").read_text().partition("<!-- benchmarks:begin -->")[2]
PAGE = (ROOT / "docs/comparison.md").read_text()
SPEEDS = PAGE.partition("\n## How fast, side by side\n")[2].partition("\n## ")[0]
NAMES = {  # here, and how the row begins in README
    "Penstock TMQ": "Penstock TMQ ",
    "NATS JetStream as shipped": "NATS JetStream as shipped 2",
    "NATS JetStream, `sync_interval: always`": "NATS JetStream, sync_interval: always ",
    "RabbitMQ 3.10.8 quorum queue, one node": "RabbitMQ quorum queue 3.10.8 ",
}


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def measured(begins: str) -> list[str]:
    """Put 10 x 200, take, put 50 x 1, take; without how many times more or less that is."""
    (row,) = [line for line in README.splitlines() if line.startswith(f"| {begins}")]
    return [cell.partition(" ")[0] for cell in cells(row)[1:5]]


@pytest.mark.parametrize("name", NAMES)
def test_the_table_is_what_was_measured(name: str) -> None:
    (row,) = [line for line in SPEEDS.splitlines() if line.startswith(f"| {name} |")]
    assert cells(row)[1:5] == measured(NAMES[name])


def test_no_row_is_without_a_measurement() -> None:
    rows = [line for line in SPEEDS.splitlines() if line.startswith("| ") and "---" not in line]
    assert {cells(row)[0] for row in rows} - {""} == set(NAMES)


def test_what_is_said_of_one_at_a_time() -> None:
    said = re.search(
        r"JetStream as shipped does ([\d,]+) puts a second where TMQ does ([\d,]+).*?Told to, it does ([\d,]+)\.",
        PAGE,
        re.S,
    )
    assert said is not None
    rows = ("NATS JetStream as shipped", "Penstock TMQ", "NATS JetStream, `sync_interval: always`")
    assert [float(each.replace(",", "")) / 1000 for each in said.groups()] == [
        float(measured(NAMES[row])[2]) for row in rows
    ]


def test_what_is_said_of_one_subscriber() -> None:
    """Three times as many, and to a hundred the other way round."""

    def times(to: str) -> float:
        found = re.search(
            rf"deliveries, 1 publisher to {to}: Penstock text / NATS core \| ([\d.]+) x", README
        )
        assert found is not None
        return float(found[1])

    assert "NATS core delivers three times as many" in PAGE
    assert round(1 / times("1 subscriber")) == 3
    assert times("100 subscribers") > 1
