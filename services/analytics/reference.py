"""Write the tables of columns and of the report's fields in docs/analytics.md from the schemas.

python -m services.analytics.reference docs/analytics.md
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import pyarrow as pa
from pydantic import BaseModel
from pyspark.sql.pandas.types import from_arrow_type

from services.analytics.tables import GOLD, Table
from services.redis_stream.schema import COLUMNS, Kind
from services.store.report import Report

PLACE = re.compile(r"(<!-- columns of (\w+) -->\n).*?(<!-- end -->)", re.S)
FIELDS = re.compile(r"(<!-- fields of the report -->\n).*?(<!-- end -->)", re.S)
JSON = {bool: "boolean", str: "string", int: "integer", float: "number"}
TABLES = re.compile(r"(<!-- tables of the job -->\n).*?(<!-- end -->)", re.S)


def table(kind: Kind) -> str:
    """Return the columns of a kind in Markdown, with types of Spark SQL."""
    rows = [f"| `{each.name}` | {spark_type(each.type)} | {each.meaning} |\n" for each in COLUMNS[kind]]
    return "".join(["| column | type | meaning |\n|---|---|---|\n", *rows])


def spark_type(arrow: pa.DataType) -> str:
    """Return the name of an Arrow type in Spark SQL."""
    return from_arrow_type(arrow).simpleString()


def tables() -> str:
    """Return the columns of all tables of the job, without the hour that all have."""
    return "".join(map(_of_the_job, GOLD))


def _of_the_job(one: Table) -> str:
    rows = [
        f"| `{each.name}` | {each.type.simpleString()} | {each.meaning} |\n"
        for each in (*one.keys, *one.values)
    ]
    head = f"\n#### `{one.name}`\n{one.meaning}\n\n| column | type | meaning |\n|---|---|---|\n"
    return "".join([head, *rows])


def fields() -> str:
    """Return the fields of the report's JSON in Markdown; `[]` marks a list."""
    rows = [f"| `{path}` | {kind} | {meaning} |\n" for path, kind, meaning in _fields(Report, "")]
    return "".join(["| field | type | meaning |\n|---|---|---|\n", *rows])


def _fields(part: type[BaseModel], before: str) -> Iterator[tuple[str, str, str]]:
    for name, field in part.model_fields.items():
        path = f"{before}{field.alias or name}"
        inner, is_list = _inside(field.annotation)
        yield path, _kind(field.annotation), field.description or ""
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _fields(inner, f"{path}[]." if is_list else f"{path}.")


def _inside(annotation: Any) -> tuple[Any, bool]:
    """Return the type of a field, or of the elements of a list, and whether it is a list."""
    if get_origin(annotation) is tuple:
        return get_args(annotation)[0], True
    return annotation, False


def _kind(annotation: Any) -> str:
    inner, is_list = _inside(annotation)
    if is_list:
        return f"list of {JSON[inner]}s" if inner in JSON else "list"
    if get_origin(inner) is Annotated:
        inner = get_args(inner)[0]
    if type(None) in get_args(inner):
        return f"{JSON[get_args(inner)[0]]} or null"
    return JSON.get(inner, "object")


def page(text: str) -> str:
    """Return the page with its tables updated."""
    text = FIELDS.sub(lambda found: found[1] + fields() + found[2], text)
    text = PLACE.sub(lambda found: found[1] + table(Kind(found[2])) + found[3], text)
    return TABLES.sub(lambda found: found[1] + tables() + found[2], text)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(page(path.read_text()))
