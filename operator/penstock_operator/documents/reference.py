"""Generate the tables of fields in docs/kubernetes.md: `python -m penstock_operator.documents.reference PAGE`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock_operator.documents.crds import peer_crd, queue_crd, redrive_crd
from penstock_operator.documents.schema import Schema

BEGIN, END = "<!-- fields of {}: begin -->", "<!-- fields of {}: end -->"


def rows(schema: Schema, path: str) -> Iterator[str]:
    """Yield a row for each field of the schema, recursively."""
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        place = f"{path}.{name}"
        inner = field.get("items", {}) if field["type"] == "array" else field
        if not inner.get("properties"):
            yield (
                f"| `{place}` | {_default(field, name in required)} | {_allowed(field)} | {field['description']} |"
            )
        yield from rows(inner, place if inner is field else f"{place}[]")


def _default(field: Schema, required: bool) -> str:
    if required:
        return "required"
    return f"`{json.dumps(field['default'])}`" if "default" in field else "-"


def _allowed(field: Schema) -> str:
    if "enum" in field:
        return ", ".join(f"`{each}`" for each in field["enum"])
    if field["type"] == "array":
        most = field.get("maxItems")
        return (
            f"up to {most} of: {_allowed(field['items'])}" if most else f"list of: {_allowed(field['items'])}"
        )
    return _bounds(field) or str(field["type"])


def _bounds(field: Schema) -> str:
    for least, most, what in (("minimum", "maximum", "whole number"), ("minLength", "maxLength", "text")):
        if most in field:
            low = field.get(least)
            unit = "" if what == "whole number" else " characters"
            span = f"{low} to {field[most]}" if low is not None else f"up to {field[most]}"
            return f"{what}, {span}{unit}"
    if "minimum" in field:
        return f"whole number from {field['minimum']}"
    return "`true`, `false`" if field["type"] == "boolean" else ""


def table(crd: Schema) -> str:
    """Return the table of fields of a CRD."""
    document: dict[str, Any] = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    head = "| field | default | allowed | meaning |\n|---|---|---|---|\n"
    parts = (rows(document["properties"][part], part) for part in ("spec", "status"))
    return head + "\n".join(row for part in parts for row in part) + "\n"


def tables() -> dict[str, str]:
    """Return the tables by kind."""
    return {crd["spec"]["names"]["kind"]: table(crd) for crd in (queue_crd(), peer_crd(), redrive_crd())}


def filled(page: str) -> str:
    """Return the page with regenerated tables. Raises ValueError if a marker is missing."""
    for kind, lines in tables().items():
        begin, end = BEGIN.format(kind), END.format(kind)
        before, _, rest = page.partition(begin)
        _, found, after = rest.partition(end)
        if not found:
            raise ValueError(f"the page lacks the markers for the fields of {kind}: {begin} ... {end}")
        page = f"{before}{begin}\n\n{lines}\n{end}{after}"
    return page


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(filled(path.read_text("utf-8")), "utf-8")
