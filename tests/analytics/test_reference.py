"""Check that docs/analytics.md lists every column and option."""

from __future__ import annotations

import re
from pathlib import Path

from services.analytics.__main__ import run_command
from services.analytics.tables import GOLD
from services.redis_stream.options import KNOWN
from services.redis_stream.schema import Kind
from services.store.model.buckets import CLASSES, PUT_S, WAIT_S
from tools import analytics_docs

PAGE = Path(__file__).parents[2] / "docs" / "analytics.md"


def test_the_tables_of_columns_are_not_stale() -> None:
    text = PAGE.read_text()
    assert text == analytics_docs.page(text), "run `make analytics-docs`"
    generated = {found[2] for found in analytics_docs.GENERATED.finditer(text)}
    columns = {f"columns of {kind}" for kind in Kind}
    assert generated == {*columns, "tables of the job", "fields of the report"}


def test_every_table_of_the_job_and_every_flag_is_on_it() -> None:
    text = PAGE.read_text()
    assert all(f"#### `{table.name}`\n{table.meaning}\n" in text for table in GOLD)
    told = text.partition("### Its flags\n")[2].partition("\n### ")[0]
    flags = {
        flag for row in re.findall(r"^\| (`--.*?) \|", told, re.M) for flag in re.findall(r"--[\w-]+", row)
    }
    assert flags == {
        flag for each in run_command.params if not each.hidden for flag in (*each.opts, *each.secondary_opts)
    }


def test_every_option_is_on_it() -> None:
    table = PAGE.read_text().partition("### Options\n")[2].partition("\n### ")[0]
    told = {
        name.lower()
        for row in re.findall(r"^\| (`.*?) \|", table, re.M)
        for name in re.findall(r"`(\w+)`", row)
    }
    assert told == KNOWN - {"path"}


def test_the_bounds_of_histograms_are_on_it() -> None:
    for name, bounds in (("PUT_S", PUT_S), ("WAIT_S", WAIT_S)):
        assert f"| {name} | {' '.join(f'{bound:g}' for bound in bounds)} |" in PAGE.read_text()
        assert len(bounds) + 1 == CLASSES
