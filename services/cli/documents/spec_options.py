"""Options of `queue create`, generated from the fields of the queue document."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_args, get_origin

import click
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from services.cli.terminal.exits import Exit, Failure
from services.kit.config import describe_errors, merge
from services.store import QueueSpec

Given = str | tuple[str, ...] | None  # the value of one option
SEPARATOR = "__"  # in the names of click's parameters, which are Python's

# help texts of flags, which say what the flag does; every field that is true by default needs one
FLAGS = {
    ("paused",): "create the queue paused: no message can be put in or taken out",
    ("bindings", "rqpMca", "exclusive"): "let several senders have the queue assigned at the same time",
    ("remote", "reliable"): "send each message once, without waiting for a confirmation",
}


def _fields(
    model: type[BaseModel], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    """Yield every scalar field with its path in the document."""
    for name, field in model.model_fields.items():
        here = (*path, field.alias or name)
        if inner := _model(field.annotation):
            yield from _fields(inner, here)
        else:
            yield here, field


def _model(annotation: Any) -> type[BaseModel] | None:
    """Return the model that a field holds, optional or not."""
    for option in (annotation, *get_args(annotation)):
        if isinstance(option, type) and issubclass(option, BaseModel):
            return option
    return None


def _option_name(path: tuple[str, ...]) -> str:
    """Return the option's name: ('deadLetter', 'maxLength') -> 'dead-letter-max-length'."""
    kebab = ("".join(f"-{c.lower()}" if c.isupper() else c for c in part) for part in path)
    return "-".join(kebab).replace("-t-t-l", "-ttl")


def _spec_option(path: tuple[str, ...], field: FieldInfo) -> Callable[[Any], Any]:
    name, parameter, kind = f"--{_option_name(path)}", SEPARATOR.join(path), field.annotation
    if kind is bool and field.default is True:
        return click.option(f"--no-{name[2:]}", parameter, flag_value="false", help=FLAGS[path])
    if kind is bool:
        return click.option(name, parameter, flag_value="true", help=FLAGS.get(path, field.description))
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        choices = click.Choice([member.value for member in kind])
        return click.option(name, parameter, type=choices, help=field.description)
    if get_origin(kind) is tuple:
        return click.option(name, parameter, multiple=True, help=f"{field.description}; repeatable")
    return click.option(name, parameter, help=field.description)


def spec_options(function: Any) -> Any:
    """Add an option for every field of a queue's spec."""
    for path, field in reversed(list(_fields(QueueSpec))):
        function = _spec_option(path, field)(function)
    return function


def spec_from(given: Mapping[str, Given]) -> QueueSpec:
    """Build the spec from the option values. Raises Failure."""
    tree: dict[str, Any] = {}
    for path, value in given.items():
        if value not in (None, ()):  # () is a repeatable option that was not given
            branch: Any = value
            for name in reversed(path.split(SEPARATOR)):
                branch = {name: branch}
            tree = merge(tree, branch)
    try:
        return QueueSpec.model_validate(tree)
    except ValidationError as error:
        faults = (line.removeprefix(": ") for line in describe_errors(error, QueueSpec, None))
        raise Failure(Exit.USAGE, "bad_document", "\n".join(faults)) from None
