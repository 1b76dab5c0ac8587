"""Split lists written in one text, as in an environment variable: `a:1,b:2`, or JSON."""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from services.kit.config.layers import Tree
from services.outside.document import BadDocument, read_json

LISTS = (list, tuple, set, frozenset)


def split_lists(model: type[BaseModel], tree: Mapping[str, Any]) -> Tree:
    """Return the settings with each text split where `model` has a list, at any depth."""
    kinds = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
    return {name: _split(kinds.get(name), value) for name, value in tree.items()}


def _split(kind: Any, value: Any) -> Any:
    options = _options(kind)
    if isinstance(value, str):
        lists = [option for option in options if get_origin(option) in LISTS]
        return _read(value, lists) if lists and str not in options else value
    if isinstance(value, Mapping):
        for option in options:
            if isinstance(option, type) and issubclass(option, BaseModel):
                return split_lists(option, value)
            if get_origin(option) is dict:
                return {name: _split(get_args(option)[1], inner) for name, inner in value.items()}
    return value


def _read(text: str, lists: list[Any]) -> Any:
    """Parse JSON, else split at commas if the items are texts; leave anything else for validation to reject."""
    if text.startswith("["):
        try:
            return read_json(text)
        except BadDocument:  # perhaps an IPv6 address in its brackets
            pass
    wants_texts = any(_plain(get_args(kind)[0]) is str for kind in lists)
    return [part.strip() for part in text.split(",") if part.strip()] if wants_texts else text


def _options(kind: Any) -> list[Any]:
    """Return the members of a union, or the type itself, without annotations."""
    kind = _plain(kind)
    return [_plain(part) for part in get_args(kind)] if get_origin(kind) in (Union, UnionType) else [kind]


def _plain(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind
