"""Write the tables in docs/analytics.md from the schemas: python -m tools.analytics_docs docs/analytics.md

They list the columns of the data source and of the job's tables, and the fields of the report.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel
from pyspark.sql.pandas.types import from_arrow_type

from services.analytics.tables import GOLD, Table
from services.redis_stream.schema import COLUMNS, Kind
from services.store.report import Report

GENERATED = re.compile(
    r"(<!-- (columns of (\w+)|tables of the job|fields of the report) -->\n).*?(<!-- end -->)", re.S
)
JSON = {bool: "boolean", str: "string", int: "integer", float: "number"}
Row = tuple[str, str, str]


def page(text: str) -> str:
    """Return the page with its tables updated."""
    return GENERATED.sub(lambda found: f"{found[1]}{_generated(found)}{found[4]}", text)


def _generated(found: re.Match[str]) -> str:
    if found[3]:
        return columns_of(Kind(found[3]))
    return fields() if found[2] == "fields of the report" else "".join(map(_of_the_job, GOLD))


def columns_of(kind: Kind) -> str:
    """Return the columns of a kind, with types of Spark SQL."""
    return _rows("column", ((each.name, _spark_type(each.type), each.meaning) for each in COLUMNS[kind]))


def _spark_type(arrow: Any) -> str:
    return from_arrow_type(arrow).simpleString()


def _of_the_job(one: Table) -> str:
    """Return the columns of a table, without the hour that all tables have."""
    columns = ((each.name, each.type.simpleString(), each.meaning) for each in (*one.keys, *one.values))
    return f"\n#### `{one.name}`\n{one.meaning}\n\n{_rows('column', columns)}"


def fields() -> str:
    """Return the fields of the report's JSON; `[]` marks a list."""
    return _rows("field", _fields(Report, ""))


def _rows(what: str, rows: Iterable[Row]) -> str:
    lines = (f"| `{name}` | {kind} | {meaning} |\n" for name, kind, meaning in rows)
    return "".join([f"| {what} | type | meaning |\n|---|---|---|\n", *lines])


def _fields(part: type[BaseModel], before: str) -> Iterator[Row]:
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


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(page(path.read_text("utf-8")), "utf-8")
