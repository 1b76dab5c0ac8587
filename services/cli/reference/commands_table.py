"""Generate docs/reference/cli.md from the commands.

python -m services.cli.reference.commands_table > docs/reference/cli.md
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from services.cli.main import penstock

INTRODUCTION = """\
# Command reference

This page lists every command with all its options. It is for those who look one up.

Generated from the commands by `make cli-reference`; a test checks that it is current. [The command line](../cli.md)
explains the commands with examples, [settings](../settings.md) the environment, files and `--set`. Every command also
has `-h` and `--help`.
"""
NAME = "penstock"
HELP = "--help"


def page() -> str:
    """Return the page as Markdown."""
    context = click.Context(penstock, info_name=NAME, max_content_width=100)
    return "\n".join([INTRODUCTION, *_commands(context)])


def _commands(context: click.Context) -> Iterator[str]:
    """Yield the sections of all commands of a group, recursively."""
    group = context.command
    assert isinstance(group, click.Group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        inner = click.Context(command, info_name=name, parent=context)
        if isinstance(command, click.Group):
            yield f"## {inner.command_path}\n\n{_prose(command.help)}\n"
            yield from _commands(inner)
        else:
            yield _command(inner)


def _command(context: click.Context) -> str:
    depth = context.command_path.count(" ")
    usage = " ".join([context.command_path, *context.command.collect_usage_pieces(context)])
    lines = ["#" * (depth + 1) + f" {context.command_path}", "", _prose(context.command.help), ""]
    lines += ["```", usage, "```", "", "| option | meaning | default, range |", "|---|---|---|"]
    return "\n".join([*lines, *_options(context), ""])


def _options(context: click.Context) -> Iterator[str]:
    for option in context.command.get_params(context):
        if isinstance(option, click.Option) and HELP not in option.opts and not option.hidden:
            names = ", ".join([*option.opts, *option.secondary_opts])
            if not (option.is_flag or option.count or isinstance(option.type, click.Choice)):
                names = f"{names} {option.make_metavar(context).removesuffix(' RANGE')}"
            yield f"| `{names}` | {_cell(option.help or '')} | {_cell(_values(option, context)) or '-'} |"


def _values(option: click.Option, context: click.Context) -> str:
    """Return the default and the allowed values."""
    extra = option.get_help_extra(context)
    choices = ", ".join(option.type.choices) if isinstance(option.type, click.Choice) else ""
    values = (
        "required" if option.required else "",
        extra.get("default", ""),
        extra.get("range", ""),
        choices,
    )
    return "; ".join(each for each in values if each)


def _cell(text: str) -> str:
    """Escape the text for a Markdown table."""
    return re.sub(r"([|*])", r"\\\1", " ".join(text.split())).replace("<", "&lt;")


def _prose(text: str | None) -> str:
    """Return the paragraphs without click's marks for line breaks."""
    paragraphs = re.split(r"\n\s*\n", (text or "").replace("\b\n", "").strip())
    return "\n\n".join(_cell(paragraph) for paragraph in paragraphs)


if __name__ == "__main__":
    print(page(), end="")
