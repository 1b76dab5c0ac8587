"""Test the table `traffic`: counts, repeats, peaks and budgets, by the words of docs/analytics.md."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from services.analytics.aggregates import peaks
from services.redis_stream.schema import Kind
from tests.analytics.test_hour_tables import BEGIN_MS, Hour, at, ids, sample, worked


def test_the_largest_counts_are_summed_exactly(tmp_path: Path) -> None:
    """Check exact sums; counts in an old archive beyond the precision of floats stop nothing."""
    most = 2**40
    told = {"in": most, "refused": [("full", most)], "refused_puts": most}
    rows = [worked(1000 * n, "orders", n, **told) for n in range(3000)]
    (row,) = Hour(tmp_path, Kind.SAMPLES).rows("traffic", *rows)
    assert row["in"] == row["refused_all"] == most * len(rows)
    assert row["availability"] == 0.5
    (row,) = Hour(tmp_path, Kind.SAMPLES).rows("traffic", worked(0, "orders", 1, **{"in": 2**53 + 1}))
    assert row["in_rate"] == pytest.approx(2**53 / 3600)


def test_a_repeat_in_the_next_hour_is_one(tmp_path: Path) -> None:
    """Check that repeats need the same process; another sample of the hour before is not one."""
    first = worked(-2, "orders", 7, **{"in": 5, "id": f"{BEGIN_MS - 2}-0"})
    again, new = {**first, "id": ids(3), "at": at(3)}, worked(4, "orders", 8, **{"in": 2})
    hour = Hour(tmp_path, Kind.SAMPLES)
    (row,) = hour.rows("traffic", again, new, before=(first,))
    assert row["in"] == 2
    flow = {"connections": 1, "opened": 4, "received_octets": 2, "sent_octets": 3, "refused": []}
    of_process = sample("edge", -2, edge="tmq", process="p", n=7, **flow)
    once_more = {**of_process, "id": ids(5), "at": at(5)}
    assert hour.rows("edges", once_more, before=(of_process,)) == []


@pytest.mark.parametrize("seconds", [10.0, 3.0, 61.5])
def test_a_constant_rate_is_the_peak(tmp_path: Path, chance: random.Random, seconds: float) -> None:
    """Check intervals of irregular lengths."""
    rows, last, n = [], -5000, 0
    while last < 3_590_000:
        now = last + int(seconds * 1000 * chance.uniform(0.9, 1.1))
        rows.append(
            worked(now, "orders", n := n + 1, ms=now - last, **{"in": now - last, "out": (now - last) // 2})
        )
        last = now
    (row,) = Hour(tmp_path, Kind.SAMPLES).rows("traffic", *rows)
    assert row["in_peak"] == pytest.approx(1000)
    assert row["out_peak"] == pytest.approx(500, abs=0.5)


@pytest.mark.parametrize(
    ("end_ms", "ms", "number", "peak"),
    [
        (20_000, 10_000, 100, 10.0),  # exactly one slot
        (25_000, 10_000, 100, 5.0),
        (15_001, 1, 7, 0.7),
        (20_000, 1, 7, 0.7),
        (3_599_999, 86_400_000, 86_400, 1.0),  # the store was unavailable for a day
        (0, 10_000, 100, 10.0),  # all of it before the hour
        (3_000, 10_000, 100, 7.0),
        (3_000, 3_600_000, 3_600, 1.0),
    ],
)
def test_what_a_sample_tells_of_is_spread_over_its_time(
    tmp_path: Path, end_ms: int, ms: int, number: int, peak: float
) -> None:
    (row,) = Hour(tmp_path, Kind.SAMPLES).rows(
        "traffic", worked(end_ms, "orders", 1, ms=ms, **{"in": number})
    )
    assert row["in_peak"] == pytest.approx(peak, abs=0.01)


def test_long_samples_are_cut_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [worked(3_599_000, "orders", n, ms=3_600_000, **{"in": 3600}) for n in range(5)]
    hour = Hour(tmp_path, Kind.SAMPLES)
    whole = hour.rows("traffic", *rows)
    for pieces in (1, 361):
        monkeypatch.setattr(peaks, "PIECES", pieces)
        assert hour.rows("traffic", *rows) == whole
    assert whole[0]["in_peak"] == pytest.approx(5)


def test_only_refused_puts_use_the_budget(tmp_path: Path) -> None:
    """Check older edges and archives without refused puts: all refusals count."""
    late = {"refused": [("lease_lost", 30), ("queue_full", 1)], "in": 10}
    hour = Hour(tmp_path, Kind.SAMPLES)
    (row,) = hour.rows("traffic", worked(0, "orders", 1, refused_puts=1, **late))
    assert (row["refused_all"], row["refused_puts"], row["availability"]) == (31, 1, 10 / 11)
    (row,) = hour.rows("traffic", worked(0, "orders", 1, refused_puts=None, **late))
    assert (row["refused_puts"], row["availability"]) == (31, 10 / 41)
    name = hour.file([worked(0, "orders", 1, **late)])
    old = pq.read_table(tmp_path / name).drop_columns(["refused_puts"])
    pq.write_table(old, tmp_path / name)
    assert (
        hour.octets([name])["traffic"]
        == hour.octets([hour.file([worked(0, "orders", 1, refused_puts=None, **late)])])["traffic"]
    )
