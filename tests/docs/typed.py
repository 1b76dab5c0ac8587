"""Check that a command exists with these options, by the programs' own parsers and help."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import click

from services.cli.main import penstock
from tests.tmq.process import ROOT
from tools.kubernetes.programs import find

TARGET = re.compile(r"^([a-z][a-z0-9-]*):", re.M)
FLAG = re.compile(r"^\s+(?:(-\w), )?(--[a-z][\w-]*)", re.M)  # as in the help of kubectl and helm
IN_HELP = re.compile(r"(?<![\w-])--?[a-z][\w-]*")  # as in the help of argparse and click
ENDS = re.compile(r"[|<>;&]+")  # interpreted by the shell
CLIENTS = ("kubectl", "helm")


def complaint(words: Sequence[str]) -> str:
    """Return why a command cannot be typed, or '' if it can."""
    match shown(words):
        case ["penstock", *rest]:
            return of_penstock(rest)
        case ["make", *rest]:
            targets = set(TARGET.findall((ROOT / "Makefile").read_text())) | {".venv/.ready"}
            return ", ".join(word for word in rest if "=" not in word and word not in targets)
        case ["python", "-m", module, *rest]:
            return of_module(module, rest)
        case [("kubectl" | "helm") as program, *rest]:
            return of_client(program, rest)
    return ""


def shown(words: Sequence[str]) -> list[str]:
    """Return the words up to the next command or an ellipsis."""
    found = []
    for word in words:
        if ENDS.fullmatch(word) or word == "...":
            break
        found.append(word)
    return found


def is_any(word: str) -> bool:
    """Return whether a word is a placeholder: `QUEUE`, `<name>`."""
    return word.isupper() or "<" in word


def of_penstock(words: Sequence[str]) -> str:
    """Return click's complaint about a command and its values; missing arguments are allowed in a sentence."""
    command: click.Command = penstock
    context = click.Context(command)
    rest = list(words)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        if is_any(name):
            return ""
        found = command.get_command(context, name)
        if found is None:
            return name
        command, context = found, click.Context(found, parent=context, info_name=name)
    if {"--help", "--version"} & set(rest):
        return ""
    try:
        values, left, _ = command.make_parser(context).parse_args(rest)
        for parameter in command.get_params(context):
            _look_at(context, parameter, values.get(parameter.name or ""))
    except click.BadOptionUsage:
        return ""  # a value is left out
    except click.UsageError as error:
        return error.format_message() or str(error)
    return "" if isinstance(command, click.Group) or context.allow_extra_args else " ".join(left)


def _look_at(context: click.Context, parameter: click.Parameter, value: object) -> None:
    """Check a value of an option. Raises UsageError for an invalid one."""
    said = value if isinstance(value, list | tuple) else (value,)
    if isinstance(parameter.type, click.Path | click.File) or not all(isinstance(each, str) for each in said):
        return
    for each in said:
        if not is_any(each):
            parameter.type.convert(each, parameter, context)


@cache
def penstock_options() -> set[str]:
    """Return the options of all commands."""

    def below(command: click.Command) -> Iterator[str]:
        for each in command.get_params(click.Context(command)):
            if isinstance(each, click.Option):
                yield from (*each.opts, *each.secondary_opts)
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                if inner := command.get_command(context, name):
                    yield from below(inner)

    return {*below(penstock), "--help", "--version"}


def of_module(module: str, words: Iterable[str]) -> str:
    if importlib.util.find_spec(module) is None:
        return module
    wanted = flags_of(words)
    return ", ".join(sorted(wanted - module_options(module))) if wanted else ""


@cache
def module_options(module: str) -> set[str]:
    command = [sys.executable, "-m", module, "--help"]
    return set(IN_HELP.findall(subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout))


def of_client(program: str, words: Sequence[str]) -> str:
    """Return the pinned kubectl's or helm's complaint, or that of the command to run in a pod."""
    cut = words.index("--") if "--" in words else len(words)
    own, inner = words[:cut], list(words[cut + 1 :])
    steps = tuple(_bare(own))
    if not steps:
        return complaint(inner)
    try:
        has = client_options(program, steps[:2])
    except LookupError as error:
        return str(error)
    return ", ".join(sorted(flags_of(own) - has)) or complaint(inner)


def _bare(words: Iterable[str]) -> Iterator[str]:
    for word in words:
        if not re.fullmatch(r"[a-z][a-z-]*", word):
            return
        yield word


@cache
def client_options(program: str, steps: tuple[str, ...]) -> set[str]:
    """Return the options of a command and those of all commands. Raises LookupError if there is no such command."""
    help_text = _said(program, *steps, "--help")
    usage = re.search(r"^Usage:\n +(.*)$", help_text, re.M)
    if usage is None:
        raise LookupError(steps[0])
    is_group = re.search(r" (SUBCOMMAND|COMMAND|\[command\])", usage[1])
    if is_group and len(usage[1][: is_group.start()].split()) <= len(steps):
        raise LookupError(" ".join(steps))  # the help is the group's: the last word is unknown
    everywhere = set(_flags(_said("kubectl", "options"))) if program == "kubectl" else set()
    return set(_flags(help_text)) | everywhere  # helm repeats them in each command's help


@cache
def _said(program: str, *words: str) -> str:
    return subprocess.run([find(program), *words], capture_output=True, text=True).stdout


def _flags(help_text: str) -> Iterator[str]:
    for short, long in FLAG.findall(help_text):
        yield from filter(None, (short, long))


def flags_of(words: Iterable[str]) -> set[str]:
    """Return the options among these words: `--set` of `--set a=b`, `--output` of `--output=json`, `-n`."""
    return {word.partition("=")[0].rstrip(",") for word in words if re.match(r"--?[a-zA-Z]", word)}
