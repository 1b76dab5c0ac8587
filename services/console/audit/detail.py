"""Build the details of audit log lines, shortened to a maximum length."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

REST = "..."
MIN_ROOM = 24  # octets; with less left, an item is omitted
FIRST = 5  # of many IDs


def made(new: BaseModel) -> dict[str, Any]:
    """Return the fields set in a new document."""
    return {"made": _fields_set(new)}


def changed(old: BaseModel | None, new: BaseModel) -> dict[str, Any]:
    """Return [before, after] of fields that differ; all fields set if the old document is unreadable (None)."""
    if old is None:
        return {"replaced": _fields_set(new)}
    now = new.model_dump(mode="json", by_alias=True)
    was = old.model_dump(mode="json", by_alias=True)
    return {
        "changed": {name: [was.get(name), value] for name, value in now.items() if was.get(name) != value}
    }


def _fields_set(document: BaseModel) -> dict[str, Any]:
    return document.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def chosen(ids: Sequence[str]) -> dict[str, Any]:
    """Return the number of IDs and the first ones."""
    return {"number": len(ids), "first": list(ids[:FIRST])}


def to_json(detail: Mapping[str, Any], max_octets: int) -> str:
    """Format details as JSON of at most so many octets; omissions show as `...`."""
    plain = json.loads(json.dumps(detail, default=str))
    text = json.dumps(plain)
    return text if len(text) <= max_octets else json.dumps(_fitting(plain, max_octets))


def _fitting(value: Any, room: int) -> Any:
    if len(json.dumps(value)) <= room:
        return value
    match value:
        case str():
            return _cut(value, room)
        case dict():
            kept: dict[str, Any] = {}
            for name, each in value.items():
                left = room - len(json.dumps({**kept, name: 0, REST: REST}))
                if left < MIN_ROOM:
                    return {**kept, REST: REST}
                kept[name] = _fitting(each, left)
            return kept
        case list():
            some: list[Any] = []
            for each in value:
                left = room - len(json.dumps([*some, 0, REST]))
                if left < MIN_ROOM:
                    return [*some, REST]
                some.append(_fitting(each, left))
            return some
        case _:
            return REST  # a long number


def _cut(text: str, room: int) -> str:
    """Shorten a text until its JSON, with escapes, fits."""
    while len(json.dumps(text + REST)) > room and text:
        text = text[: len(text) - max(1, len(text) // 8)]
    return text + REST
