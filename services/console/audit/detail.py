"""What the audit log says of a change beside its target: what became other, as far as there is room for it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

REST = "..."
SHORTEST = 24  # octets that something more is worth
FIRST = 5  # of many ids


def made(new: BaseModel) -> dict[str, Any]:
    """Fields as documents have them, of those that were said."""
    return {"made": _said(new)}


def changed(old: BaseModel | None, new: BaseModel) -> dict[str, Any]:
    """[before, now] of the fields that differ; all that were said where the old one cannot be read (None)."""
    if old is None:
        return {"replaced": _said(new)}
    now = new.model_dump(mode="json", by_alias=True)
    was = old.model_dump(mode="json", by_alias=True)
    return {
        "changed": {name: [was.get(name), value] for name, value in now.items() if was.get(name) != value}
    }


def _said(document: BaseModel) -> dict[str, Any]:
    return document.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def chosen(ids: Sequence[str]) -> dict[str, Any]:
    return {"number": len(ids), "first": list(ids[:FIRST])}


def written(detail: Mapping[str, Any], most: int) -> str:
    """As JSON of at most so many octets; what is left out shows as `...`."""
    plain = json.loads(json.dumps(detail, default=str))
    text = json.dumps(plain)
    return text if len(text) <= most else json.dumps(_fitting(plain, most))


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
                if left < SHORTEST:
                    return {**kept, REST: REST}
                kept[name] = _fitting(each, left)
            return kept
        case list():
            some: list[Any] = []
            for each in value:
                left = room - len(json.dumps([*some, 0, REST]))
                if left < SHORTEST:
                    return [*some, REST]
                some.append(_fitting(each, left))
            return some
        case _:
            return REST  # a number without end


def _cut(text: str, room: int) -> str:
    """An escape takes several octets."""
    while len(json.dumps(text + REST)) > room and text:
        text = text[: len(text) - max(1, len(text) // 8)]
    return text + REST
