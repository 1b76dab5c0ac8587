"""Compare every table with plain Python over the same entries."""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from services.analytics.run import run
from services.analytics.settings import Settings, Shape
from services.analytics.tables import AGGREGATES, Table
from tests.analytics.spark import expected
from tests.redis_stream.entries import Entries, fill_letters, fill_samples
from tests.servers import PROGRAMS, Server

TOP = 3
HOURS = 3


def seed() -> int:
    found = int(os.environ.get("PENSTOCK_TEST_SEED") or secrets.randbits(32))
    print(f"PENSTOCK_TEST_SEED={found} repeats this")
    return found


@pytest.fixture(scope="module")
def done(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Entries, Path]]:
    """A run over some hours of traffic and deaths in the same queues."""
    folder, chance = tmp_path_factory.mktemp("run"), random.Random(seed())
    server = Server(next(iter(PROGRAMS)), folder / "store").start()
    store = Entries(server)
    fill_letters(store, chance, 150, HOURS, queues=("a", "b"))
    fill_samples(store, chance, 12 * HOURS, HOURS)
    run(spark, Settings(server.url, str(folder / "out"), "r1", Shape(top=TOP)))
    yield store, folder / "out"
    server.end()


def table(output: Path, of: Table) -> expected.Rows:
    """Return rows without keys, by their keys."""
    found = {}
    for path in sorted((output / "aggregates" / of.name).rglob("*.parquet")):
        day, hour = (part.partition("=")[2] for part in path.parts[-3:-1])
        rows = pq.ParquetFile(path).read().to_pylist()
        for row in rows:
            whole = {"day": day, "hour": hour, **row}
            keys = tuple(whole.pop(key) for key in of.key_names())
            found[keys] = {name: dict(value) if name == "refused" else value for name, value in whole.items()}
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


def approximately(value: Any) -> Any:
    return pytest.approx(value, rel=1e-12) if isinstance(value, float) else value


def as_told(name: str, value: Any) -> Any:
    """Return the value as the table has it: peaks are rounded to thousandths of messages for each part of a sample."""
    return pytest.approx(value, abs=0.01) if name.endswith("_peak") else approximately(value)


@pytest.mark.parametrize("of", AGGREGATES, ids=lambda table: table.name)
def test_a_table_has_what_plain_python_finds(done: tuple[Entries, Path], of: Table) -> None:
    store, output = done
    found, right = table(output, of), wanted(store)[of.name]
    assert set(found) == set(right)
    for key, row in right.items():
        assert {name: as_told(name, value) for name, value in row.items()} == found[key], key


@pytest.mark.parametrize("of", AGGREGATES, ids=lambda table: table.name)
def test_a_table_has_the_columns_it_is_said_to_have(done: tuple[Entries, Path], of: Table) -> None:
    names = [each.name for each in of.columns[2:]]
    for path in (done[1] / "aggregates" / of.name).rglob("*.parquet"):
        assert pq.read_schema(path).names == names


def test_an_hour_has_one_file_of_each_table_sorted_by_its_keys(done: tuple[Entries, Path]) -> None:
    for of in AGGREGATES:
        for path in (done[1] / "aggregates" / of.name).rglob("*.parquet"):
            assert [each.name for each in path.parent.iterdir()] == [f"{of.name}.parquet"]
            keys = [
                tuple(row[key] for key in of.key_names()[2:])
                for row in pq.ParquetFile(path).read().to_pylist()
            ]
            assert keys == sorted(keys)
