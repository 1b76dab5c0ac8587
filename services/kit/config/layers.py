"""Read the layers of settings, and describe errors in them with their origin."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args, get_origin

import pydantic_settings
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, EnvSettingsSource

from services.kit.config.secret import SECRET_FAULT, is_secret
from services.outside.document import BadDocument, read_yaml
from services.outside.url import mask_input

BAD_DOCUMENT = "bad_document"  # error label of a file that is not YAML
PREFIX = "PENSTOCK_"
SEPARATOR = "__"
LONGEST_SHOWN = 80  # characters of a bad value
_NAME = re.compile(r"[A-Za-z0-9_.-]*=?")  # the rest may be a secret
_BEGINNING = re.compile(r"^(Input|String) should")  # of pydantic's messages

Tree = dict[str, Any]
SettingPath = tuple[str, ...]  # the path of a setting

MAX_SECONDS = 604_800.0  # a week: longer times are typing errors


class SettingsError(Exception):
    """Unusable settings: one line per error. A program exits with status 2."""

    def __init__(self, lines: list[str], label: str = "bad_settings") -> None:
        super().__init__("\n".join(lines))
        self.lines = lines
        self.label = label


@dataclass(frozen=True, slots=True)
class Layers:
    """The settings of each source, the strongest first."""

    flags: Mapping[str, Any]
    environment: Mapping[str, Any]
    file: Mapping[str, Any]
    file_name: str
    # of settings with a flag of their own
    flag_names: Mapping[SettingPath, str] = field(default_factory=dict)

    def merged(self) -> Tree:
        """Return all layers as one tree."""
        return merge(merge(dict(self.file), self.environment), self.flags)

    def origin(self, path: SettingPath) -> str | None:
        """Return the source that sets `path`: the flag, the variable or the file; None for a default."""
        if _has(self.flags, path):
            return self.flag_names.get(path, "the command line")
        if _has(self.environment, path):
            name = PREFIX + SEPARATOR.join(path).upper()
            return "REDIS_URL" if path == ("store", "url") and name not in os.environ else name
        return self.file_name if _has(self.file, path) else None


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> Tree:
    """Merge mappings recursively; any other value in `above` replaces the value below."""
    result = dict(below)
    for key, value in above.items():
        under = result.get(key)
        if isinstance(value, Mapping) and isinstance(under, Mapping):
            value = merge(under, value)
        result[key] = value
    return result


def read_file(path: Path) -> Tree:
    """Return the mapping in a YAML file; empty sections are allowed. Raises SettingsError."""
    try:
        documents = [each for each in read_yaml(path.read_bytes()) if each is not None]
    except OSError as error:
        raise SettingsError([f"{path}: cannot be read: {error.strerror}"]) from None
    except BadDocument as error:
        raise SettingsError([f"{path}: {error}"], BAD_DOCUMENT) from None
    if not documents:
        return {}
    content = documents[0]
    if len(documents) > 1:
        raise SettingsError([f"{path}: must be one document: remove the line ---"])
    if not isinstance(content, dict):
        raise SettingsError([f"{path}: must be a mapping of sections such as store:, edges:"])
    return {key: {} if value is None else value for key, value in content.items()}


def read_environment(model: type[BaseSettings]) -> Tree:
    """Read PENSTOCK_<SECTION>__<FIELD>, and REDIS_URL for store.url. Raises SettingsError.

    Other variables with the prefix are ignored: Kubernetes sets PENSTOCK_PORT for a Service named penstock. A name with
    our separator is meant for us, so an unknown section in it is an error.
    """
    sections = model.model_fields
    unknown = [name for name in os.environ if SEPARATOR in name and _section(name) not in (None, *sections)]
    if unknown:
        allowed = ", ".join(f"{PREFIX}{section.upper()}{SEPARATOR}..." for section in sections)
        raise SettingsError([f"{name}: unknown section; allowed: {allowed}" for name in sorted(unknown)])
    source = EnvSettingsSource(model)
    try:
        found = source()
    except (pydantic_settings.SettingsError, RecursionError):
        raise SettingsError([*_unreadable(source)]) from None
    if url := os.environ.get("REDIS_URL"):
        found = merge({"store": {"url": url}}, found)
    return found


def _unreadable(source: EnvSettingsSource) -> Iterator[str]:
    """Yield an error for each variable that is not JSON. Its value may be a secret and is not shown."""
    for name in sorted(os.environ):
        if not name.startswith(PREFIX):
            continue
        source.env_vars = {name.lower(): os.environ[name]}
        try:
            source()
        except RecursionError:
            yield f"{name}: is nested too deeply"
        except pydantic_settings.SettingsError:
            fault = "is not JSON" if os.environ[name] else "is empty"
            fields = "" if SEPARATOR in name else f", or set its fields alone, as {name}{SEPARATOR}FIELD"
            yield f'{name}: {fault}: unset it, give it a JSON object ({{"FIELD": VALUE}}){fields}'


def read_flags(pairs: Sequence[str]) -> Tree:
    """Parse settings such as `edges.tmq.workers=4`; values are written as in the file. Raises SettingsError."""
    tree: Tree = {}
    for pair in pairs:
        path, equals, text = pair.partition("=")
        if not equals or not all(path.split(".")):
            raise SettingsError([f"{_NAME.match(pair)[0]}: must be SECTION.FIELD=VALUE"])  # type: ignore[index]
        tree = merge(tree, nested(path.split("."), _flag_value(text)))
    return tree


def nested(path: Sequence[str], value: Any) -> Tree:
    """Return a tree with only `value`, at `path`."""
    for name in reversed(path):
        value = {name: value}
    tree: Tree = value
    return tree


def _flag_value(text: str) -> Any:
    """Parse YAML such as `8080`, `off` or `[a, b]`; `::` and `redis://host` are text."""
    try:
        value = next(iter(read_yaml(text)), None)
    except BadDocument:
        return text
    return text if isinstance(value, dict) and not text.startswith("{") else value


def _section(name: str) -> str | None:
    return name[len(PREFIX) :].partition(SEPARATOR)[0].lower() if name.startswith(PREFIX) else None


def _has(tree: Any, path: SettingPath) -> bool:
    for name in path:
        if not isinstance(tree, Mapping) or name not in tree:
            return False
        tree = tree[name]
    return True


def describe_errors(
    error: ValidationError, model: type[BaseModel], layers: Layers | None, under: SettingPath = ()
) -> list[str]:
    """Return a line per error: the setting, what is wrong, what is allowed, and the source of the value."""
    return [_line(fault, model, layers, under) for fault in error.errors(include_url=False)]


def _line(fault: Mapping[str, Any], model: type[BaseModel], layers: Layers | None, under: SettingPath) -> str:
    inner = tuple(str(part) for part in fault["loc"])
    path = (*under, *inner)
    origin = next(_origins(layers, path), None)
    source = f" (from {origin})" if origin else ""
    return f"{'.'.join(map(_in_one_line, path))}: {_problem(fault, model, inner)}{source}"


def _in_one_line(name: str) -> str:
    return name if name.isprintable() else repr(name)


def _origins(layers: Layers | None, path: SettingPath) -> Iterator[str]:
    """Yield the source of a setting, or of the list or mapping that contains it."""
    for end in range(len(path), 0, -1):
        if layers is not None and (origin := layers.origin(path[:end])) is not None:
            yield origin


def _problem(fault: Mapping[str, Any], model: type[BaseModel], inner: SettingPath) -> str:
    kind = fault["type"]
    if kind == "extra_forbidden":
        return f"unknown; allowed: {', '.join(_fields_at(model, inner[:-1]))}"
    if kind == "missing":
        return "missing"
    if kind == "model_type":
        return "must be a mapping of fields"
    text = _BEGINNING.sub("must", str(fault["msg"]).removeprefix("Value error, "))
    shown = mask_input(repr(fault["input"]))
    if kind == SECRET_FAULT or any(is_secret(name) for name in inner) or isinstance(fault["input"], Mapping):
        return text
    text = text.replace(repr(fault["input"]), shown)
    return f"{text}, not {shown if len(shown) <= LONGEST_SHOWN else shown[:LONGEST_SHOWN] + '...'}"


def _fields_at(model: type[BaseModel], inner: SettingPath) -> list[str]:
    """Return the fields of the model at a path, through mappings, unions and lists."""
    here: Any = model
    for name in inner:
        if isinstance(here, type) and issubclass(here, BaseModel):
            fields = _fields(here)
            here = fields[name].annotation if name in fields else None
        elif get_origin(here) in (dict, list, tuple):
            here = get_args(here)[-1] if get_origin(here) is dict else get_args(here)[0]
        models = [option for option in get_args(here) if isinstance(option, type)]
        if get_origin(here) not in (dict, list, tuple) and models:
            here = models[0]
    return list(_fields(here)) if isinstance(here, type) and issubclass(here, BaseModel) else []


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields by their name in a file."""
    return {field.alias or name: field for name, field in model.model_fields.items()}
