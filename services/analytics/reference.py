"""The tables of columns in docs/analytics.md, out of the schema.

python -m services.analytics.reference docs/analytics.md
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type

from services.analytics.schema import COLUMNS, Kind
from services.analytics.tables import AGGREGATES, Table

PLACE = re.compile(r"(<!-- columns of (\w+) -->\n).*?(<!-- end -->)", re.S)
TABLES = re.compile(r"(<!-- tables of the job -->\n).*?(<!-- end -->)", re.S)


def table(kind: Kind) -> str:
    """In Markdown; types as Spark's SQL has them."""
    rows = [f"| `{each.name}` | {spark_type(each.type)} | {each.meaning} |\n" for each in COLUMNS[kind]]
    return "".join(["| column | type | meaning |\n|---|---|---|\n", *rows])


def spark_type(arrow: pa.DataType) -> str:
    return from_arrow_type(arrow).simpleString()


def tables() -> str:
    """All that the job writes; the hour, which all of them have, is told once."""
    return "".join(map(_of_the_job, AGGREGATES))


def _of_the_job(one: Table) -> str:
    rows = [f"| `{each.name}` | {each.type} | {each.meaning} |\n" for each in (*one.keys, *one.values)]
    head = f"\n#### `{one.name}`\n{one.meaning}\n\n| column | type | meaning |\n|---|---|---|\n"
    return "".join([head, *rows])


def page(text: str) -> str:
    """The page with its tables as they are now."""
    text = PLACE.sub(lambda found: found[1] + table(Kind(found[2])) + found[3], text)
    return TABLES.sub(lambda found: found[1] + tables() + found[2], text)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(page(path.read_text()))
