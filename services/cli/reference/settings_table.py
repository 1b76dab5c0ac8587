"""Generate docs/settings.md from the settings: `make settings-docs`."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from services.console.settings import ConsoleSettings
from services.kit.config import GlobalSettings, SecretText, SecretUrl
from services.kit.edge import Edge, edges
from services.kit.net import Network
from services.sysv.settings import SysvSettings

KIBI = ("", "KiB", "MiB", "GiB")
WORDS: dict[Any, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "`true`, `false`",
    Path: "path",
    SecretUrl: "URL",
    SecretText: "text",
    Network: "networks such as `10.0.0.0/8`",
}
# Meanings of settings without a description of their own, by the last name of the path.
MEANINGS = {
    "tls": "enables TLS; default: plain TCP",
    "max_connections": "maximum connections of this listener, over all workers; further ones are refused",
    "handshake_timeout_s": "timeout of the TLS handshake; then the connection is closed",
    "min_version": "oldest TLS version to accept",
    "backlog": "maximum connections waiting to be accepted",
}
INTRODUCTION = """\
# Settings

This page lists every setting with its default, range and meaning. It is for those who configure edges,
console or bridge.

Generated from the settings by `make settings-docs`; a test checks that it is current.

Each setting has a path. Sources, each overriding those before it:

1. the defaults below;
2. a YAML file, nested by path: the file of `--config`, else of `PENSTOCK_CONFIG`, else `penstock.yaml` in the working
   directory if it exists;
3. the environment: `PENSTOCK_` and the path in upper case with `__` between its parts, such as
   `PENSTOCK_EDGES__TMQ__WORKERS=4`; `REDIS_URL` sets `store.url`;
4. the command line: `--set edges.tmq.workers=4`; `--store URL` sets `store.url`, `--data-dir` sets `store.data_dir`;
   some edges have options of their own, which override `--set`.

A list of texts can be one text with commas: `PENSTOCK_SECTION__FIELD=a:1,b:2`, or JSON: `'["a:1", "b:2"]'`.
`penstock config` shows the settings in effect and the source of each. Unknown settings and invalid values are rejected
with exit code 2. Listeners are named: each additional name adds a listener and needs a `port`; a default listener is
switched off with `off` or `null` (`reference: null`). Numbers in brackets are sections of the protocol's document in
`protos/`. `-` means that a setting has no value.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table of settings."""

    path: str
    default: str
    allowed: str
    meaning: str


def page() -> str:
    """Return the page as Markdown."""
    parts = [INTRODUCTION]
    for name, field in GlobalSettings.model_fields.items():
        if name not in ("edges", "sysv", "console"):  # these have models of their own
            parts.append(_section(name, field.annotation, field.get_default(call_default_factory=True)))
    for name, edge in sorted(edges().items()):
        parts.append(_section(f"edges.{name}", edge.settings, edge.settings.model_validate({})))
        parts.extend(_flags(edge))
    parts.append(_section("sysv", SysvSettings, SysvSettings()))
    parts.append(_section("console", ConsoleSettings, ConsoleSettings()))
    return "\n".join(parts)


def _flags(edge: Edge[Any]) -> Iterator[str]:
    for flag in edge.flags:
        more = ", repeatable" if flag.repeatable else ""
        yield f"`{flag.name} {flag.metavar}`{more}: `edges.{edge.name}.{flag.field}`, {flag.help}.\n"


def _section(path: str, model: Any, default: BaseModel) -> str:
    text = " ".join((model.__doc__ or "").split())
    lines = [f"## {path}", *([text, ""] if text else []), "| setting | default | allowed | meaning |"]
    lines.append("|---|---|---|---|")
    lines += [f"| `{r.path}` | {r.default} | {r.allowed} | {r.meaning} |" for r in rows(model, path, default)]
    return "\n".join(lines) + "\n"


def rows(model: type[BaseModel], path: str, default: BaseModel | None) -> Iterator[Row]:
    """Yield the rows of a model. default: its default value, or None if it is absent by default."""
    for name, field in model.model_fields.items():
        here = f"{path}.{name}"
        value = (
            getattr(default, name) if default is not None else field.get_default(call_default_factory=True)
        )
        inner = _inner(field.annotation)
        if get_origin(field.annotation) is dict and inner is not None:
            yield from _named(inner, f"{here}.<{name.removesuffix('s')}>", value)
        elif get_origin(field.annotation) is tuple and inner is not None:
            yield Row(here, "-", "a list of mappings", _meaning(name, field, inner))
            yield from rows(inner, f"{here}[]", None)
        elif inner is not None:
            if _is_optional(field.annotation):
                yield Row(here, "-", "a mapping", _meaning(name, field, inner))
            yield from rows(inner, here, value)
        else:
            yield Row(here, _shown(value, name), _allowed(field), _meaning(name, field))


def _named(model: type[BaseModel], path: str, default: dict[str, BaseModel]) -> Iterator[Row]:
    """Yield the rows of a mapping's model; where its default entries differ, with the default of each name."""
    plain = {name: field.get_default() for name, field in model.model_fields.items()}
    for row in rows(model, path, None):
        name = row.path.removeprefix(f"{path}.")
        values = {key: getattr(one, name) for key, one in default.items() if "." not in name}
        if any(value != plain[name] for value in values.values()):
            defaults = ", ".join(f"{key}: {_shown(value, name)}" for key, value in values.items())
            row = Row(row.path, defaults, row.allowed, row.meaning)
        yield row


def _options(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) and kind != Network else (kind,)


def _is_optional(kind: Any) -> bool:
    return NoneType in _options(kind)


def _inner(kind: Any) -> type[BaseModel] | None:
    """Return the model that a field holds, if any."""
    if get_origin(kind) is dict:
        return _inner(get_args(kind)[1])
    if get_origin(kind) is tuple:
        return _inner(get_args(kind)[0])
    found = [one for one in _options(kind) if isinstance(one, type) and issubclass(one, BaseModel)]
    return found[0] if found else None


def _shown(value: Any, name: str) -> str:
    if isinstance(value, enum.Enum):
        value = value.value
    if value is PydanticUndefined:
        return "required"
    if value is None or value in ((), [], {}):
        return "-"
    if isinstance(value, tuple):
        return ", ".join(map(_quoted, value))
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    text = f"`{value:g}`" if isinstance(value, float) else _quoted(value)
    return (
        f"{text} ({_binary(value)})" if isinstance(value, int) and name.endswith("_bytes") and value else text
    )


def _quoted(value: Any) -> str:
    """Quote a value as in a YAML file, where '1.2' without quotes would be a number."""
    text = str(value)
    return f"`'{text}'`" if isinstance(value, str) and yaml.safe_load(text) != text else f"`{text}`"


def _binary(number: int) -> str:
    power = 0
    while number % 1024 == 0 and power + 1 < len(KIBI):
        number, power = number // 1024, power + 1
    return f"{number} {KIBI[power]}".strip()


def _allowed(field: FieldInfo) -> str:
    (kind,) = [one for one in _options(field.annotation) if one is not NoneType]
    if get_origin(kind) in (tuple, list):
        kind = _plain(get_args(kind)[0])
        if kind is str:
            return "texts"
    if get_origin(kind) is Literal:
        return ", ".join(map(_quoted, get_args(kind)))
    if get_origin(kind) is dict:
        return f"names, each with {_words(get_args(kind)[1])}"
    return _words(_plain(kind)) + _bounds(field)


def _words(kind: Any) -> str:
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return ", ".join(_quoted(member.value) for member in kind)
    return WORDS[kind]


def _plain(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _bounds(field: FieldInfo) -> str:
    signs = {"ge": "from", "gt": "above", "le": "to", "lt": "below"}
    bounds = {
        word: getattr(mark, sign)
        for mark in _marks(field.metadata)
        for sign, word in signs.items()
        if getattr(mark, sign, None) is not None
    }
    return "".join(
        f" {word} {bounds[word]:g}" if bounds[word] < 1e6 else f" {word} {_binary(int(bounds[word]))}"
        for word in bounds
    )


def _marks(metadata: list[Any]) -> Iterator[Any]:
    for mark in metadata:
        yield from _marks(mark.metadata) if isinstance(mark, FieldInfo) else (mark,)


def _meaning(name: str, field: FieldInfo, inner: type[BaseModel] | None = None) -> str:
    """Return the meaning of a setting; a test rejects empty ones."""
    text = field.description or MEANINGS.get(name, "")
    if inner is not None:
        text = f"{text}. {' '.join((inner.__doc__ or '').split())}"
    return text.replace("<", "&lt;")


if __name__ == "__main__":
    print(page(), end="")
