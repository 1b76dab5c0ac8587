"""Compare every table and the report of a run with plain Python over the entries, and with DuckDB over bronze."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable

from services.analytics.tables import ALL, GOLD, Table
from tests.analytics import expected
from tests.analytics.spark import notebooks
from tests.analytics.spark.carried_out import rows
from tests.analytics.spark.conftest import LETTERS, Done
from tests.analytics.spark.test_kills import PATIENCE_S, environment
from tests.docs.blocks import blocks
from tests.redis_stream.entries import Entries

TOP = 50  # rows of a queue and hour, unless --top says otherwise


def by_key(output: Path, table: Table) -> expected.Rows:
    """Return rows without keys, by their keys."""
    found: expected.Rows = {}
    for row in rows(output, f"gold/{table.name}"):
        keys = tuple(row.pop(key) for key in table.key_names())
        assert keys not in found
        found[keys] = {name: dict(value) if name == "refused" else value for name, value in row.items()}
    return found


def wanted(store: Entries) -> dict[str, expected.Rows]:
    samples, letters = store.samples, store.letters
    of_depths = expected.depths(samples)
    return {
        "traffic": expected.traffic(samples),
        "depths": of_depths,
        "edges": expected.edges(samples),
        "deaths": expected.deaths(letters),
        "origins": expected.origins(letters, TOP),
        "failures": expected.failures(letters, TOP),
        "redrives": expected.redrives(letters, of_depths),
        "changes": {},
    }


def as_told(name: str, value: Any) -> Any:
    """Return the value as the table has it: peaks are rounded to thousandths of messages for each part of a sample."""
    if name.endswith("_peak"):
        return pytest.approx(value, abs=0.01)
    return pytest.approx(value, rel=1e-12) if isinstance(value, float) else value


@pytest.mark.parametrize("table", GOLD, ids=lambda table: table.name)
def test_table_has_what_plain_python_finds(done: Done, table: Table) -> None:
    found, right = by_key(done.output, table), wanted(done.store)[table.name]
    assert set(found) == set(right)
    for key, row in right.items():
        told = {name: found[key][name] for name in row}
        assert told == {name: as_told(name, value) for name, value in row.items()}, key


def test_bronze_has_every_entry_once(done: Done) -> None:
    assert (done.run["dead"], done.run["dead_quarantined"], done.run["dead_gone"]) == (LETTERS, 0, 0)
    assert (done.run["samples"], done.run["samples_lost"]) == (len(done.store.samples), 0)
    dead = rows(done.output, "bronze/dead")
    assert sorted((row["queue"], row["id"]) for row in dead) == sorted(
        (letter["queue"], letter["id"]) for letter in done.store.letters
    )
    for row in dead:
        assert f"{row['day']}T{row['hour']}" == f"{row['died']:%Y-%m-%dT%H}"
        assert (row["dataset"], row["body"], len(row["fingerprint"])) == ("abc", None, 16)
    samples = [row["id"] for row in rows(done.output, "bronze/samples")]
    assert sorted(samples) == sorted(sample["id"] for sample in done.store.samples)


RECOUNTS = {
    "deaths": """
        SELECT day, hour, domain, queue, reason, edge, count(*) AS "count", sum(size) AS octets,
               count(*) FILTER (redriven > 0) AS redriven
        FROM dead WHERE problem IS NULL GROUP BY ALL""",
    "traffic": """
        SELECT day, hour, domain, queue, edge, sum("in") AS "in", sum(out_octets) AS out_octets, sum(acked) AS acked
        FROM (SELECT *, row_number() OVER (PARTITION BY stream, process, n, queue ORDER BY "at", id) AS number
              FROM samples WHERE kind = 'queue' AND problem IS NULL)
        WHERE number = 1 GROUP BY ALL""",
    "edges": """
        SELECT day, hour, edge, count(DISTINCT process) AS processes, sum(opened) AS opened
        FROM (SELECT *, row_number() OVER (PARTITION BY stream, process, n ORDER BY "at", id) AS number
              FROM samples WHERE kind = 'edge' AND problem IS NULL)
        WHERE number = 1 GROUP BY ALL""",
    "depths": """
        SELECT day, hour, domain, queue, count(*) AS samples, max(len) AS len_max, max(oldest_ms) AS oldest_ms_max
        FROM samples WHERE kind = 'depth' AND problem IS NULL GROUP BY ALL""",
}


@pytest.mark.parametrize("name", RECOUNTS)
def test_table_has_what_duckdb_counts_in_bronze(done: Done, name: str) -> None:
    with duckdb.connect() as database:
        for kind in ("dead", "samples"):
            database.register(kind, DeltaTable(done.output / "bronze" / kind).to_pyarrow_dataset())
        database.register("gold", DeltaTable(done.output / "gold" / name).to_pyarrow_dataset())
        columns = [each[0] for each in database.execute(f"DESCRIBE ({RECOUNTS[name]})").fetchall()]
        shown = ", ".join(f'"{column}"' for column in columns)
        counted = database.execute(RECOUNTS[name]).fetchall()
        assert sorted(counted) == sorted(database.execute(f"SELECT {shown} FROM gold").fetchall())
        assert counted


def test_example_of_the_page_reads_the_tables_with_duckdb(
    done: Done, capsys: pytest.CaptureFixture[str]
) -> None:
    (text,) = [each.text for each in blocks("docs/analytics.md") if "import duckdb" in each.text]
    exec(text.replace("/var/lib/penstock/analytics", str(done.output)))
    queues = Counter(letter["queue"] for letter in done.store.letters)
    shown = capsys.readouterr().out
    assert all(re.search(rf"{re.escape(queue)} +│ +{number} ", shown) for queue, number in queues.items())


@pytest.mark.timeout(PATIENCE_S)
def test_command_of_the_page_queries_the_tables(done: Done) -> None:
    (text,) = [each.text for each in blocks("docs/analytics.md") if "penstock analytics sql" in each.text]
    penstock, *words = shlex.split(text.replace("/var/lib/penstock/analytics", str(done.output)))
    assert (penstock, words[:2]) == ("penstock", ["analytics", "sql"])
    command = [
        sys.executable,
        "-P",
        "-m",
        "services.cli",
        *words,
        "--driver-memory",
        "600m",
        "--format",
        "json",
    ]
    found = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=PATIENCE_S)
    assert found.returncode == 0, found.stderr[-3000:]
    told = [list(json.loads(line).values()) for line in found.stdout.splitlines() if line.startswith("{")]
    counted = Counter((letter["queue"], letter["reason"]) for letter in done.store.letters)
    assert sorted(told) == sorted([queue, reason, number] for (queue, reason), number in counted.items())


def published(store: Entries) -> dict[str, Counter[tuple[str, str]]]:
    """Return messages published by queue, and by day and hour."""
    found: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    for (day, hour, _domain, queue, _edge), row in expected.traffic(store.samples).items():
        found[queue][day, hour] += row["in"]
    return found


@pytest.mark.timeout(2 * PATIENCE_S)
def test_notebook_shows_the_figures_of_the_output(done: Done, tmp_path: Path) -> None:
    cells = notebooks.execute(notebooks.NOTEBOOK, done.output, tmp_path)
    (views,), (columns,), (died,), (busiest,), (by_hour_of_week,), (_, counts), (by_hour,) = map(
        notebooks.tables, cells
    )
    letters = done.store.letters
    times = [datetime.fromtimestamp(letter["died"] / 1000, UTC) for letter in letters]
    assert {name for (name,) in views[1:]} == {table.view for table in ALL}
    assert ("acquired_mean", "double", "average number of deliveries") in columns
    reasons = Counter((letter["queue"], letter["reason"]) for letter in letters)
    assert [row[:3] for row in died[1:]] == [(*key, str(number)) for key, number in sorted(reasons.items())]

    queue, hours = max(sorted(published(done.store).items()), key=lambda each: each[1].total())
    right = sorted(hours.items(), key=lambda each: (-each[1], each[0]))[:5]
    assert [row[:4] for row in busiest[1:]] == [(queue, *hour, str(number)) for hour, number in right]

    edges = [letter["origin"].split()[0] for letter in letters]
    own = Counter((str(at.weekday()), str(at.hour), edge) for at, edge in zip(times, edges, strict=True))
    assert {row[:3]: int(row[3]) for row in by_hour_of_week[1:]} == own
    assert counts[1:] == [("before", "NULL"), ("now", str(LETTERS))]
    by_duckdb = {words[0]: int(words[1]) for words in by_hour if words[1].isdigit()}
    assert by_duckdb == Counter(f"{at:%Y-%m-%d %H}" for at in times)
    assert notebooks.has_picture(cells[-1])


def test_kept_outputs_of_the_notebook_are_those_of_its_cells() -> None:
    """Check the tables' columns; figures and times are those of another output."""
    cells = notebooks.read_cells(notebooks.NOTEBOOK)
    kept = [notebooks.tables(cell) for cell in cells]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert {name for (name,) in kept[0][0][1:]} == {table.view for table in ALL}
    assert [(row[0], row[1]) for row in kept[1][0][1:3]] == [("day", "string"), ("hour", "string")]
    assert notebooks.has_picture(cells[-1])


def test_report_has_the_figures_that_plain_python_finds(done: Done) -> None:
    told, right, letters = json.loads(done.report), wanted(done.store), done.store.letters
    traffic = right["traffic"].values()
    totals = {"in": "added", "out": "delivered", "acked": "acked", "died": "dead_all"}
    for name, counter in totals.items():
        assert told["totals"][name] == sum(row[counter] for row in right["depths"].values())
    assert told["totals"]["sampled_in"] == sum(row["in"] for row in traffic)
    refused = sum(row["refused_puts"] for row in traffic)
    assert told["totals"]["refused"] == sum(row["refused_all"] for row in traffic) > refused
    assert told["totals"]["dead"] == LETTERS
    reasons = {each["name"]: each["count"] for each in told["deaths"]["by_reason"]}
    assert reasons == Counter(letter["reason"] for letter in letters)
    queues = Counter(letter["queue"] for letter in letters)
    assert {each["queue"]: each["dead"] for each in told["queues"] if each["dead"]} == queues
    for name, bounds in (("put", expected.PUT), ("wait", expected.WAIT)):
        counts = [sum(column) for column in zip(*(row[name] for row in traffic), strict=True)]
        assert told[name]["counts"] == counts
        assert told[name]["p99"] == pytest.approx(expected.quantile(counts, bounds, 0.99))
    assert told["records"]["dead"] == {"read": LETTERS, "archived": LETTERS, "quarantined": 0, "gone": 0}


def test_report_is_published_and_in_the_store(done: Done) -> None:
    found = {path.name: path.read_bytes() for path in (done.output / "reports").iterdir()}
    assert sorted(found) == ["latest.html", "latest.json", "r1.html", "r1.json"]
    assert found["latest.html"] == found["r1.html"]
    assert b"&lt;script&gt;" in found["r1.html"]
    assert b"<script>" not in found["r1.html"]
    assert done.report == found["latest.json"] == found["r1.json"]
