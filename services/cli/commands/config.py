"""Implement `penstock config`."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import click

from services.cli.commands.console import console_settings
from services.cli.framework.command import Options, plain_command
from services.cli.framework.edge_flags import EdgeCommand
from services.cli.terminal.output import Output
from services.kit.config import mask
from services.kit.edge import edges
from services.store.redis import StoreUrl, file_trouble
from services.sysv.settings import SysvSettings

Tree = dict[str, Any]


def _note_files(url: StoreUrl) -> None:
    """Name a TLS file that is missing here instead of failing: the settings may be for another machine or a pod."""
    if trouble := file_trouble(url):
        Output(as_json=False).note(f"store.url: {trouble}; other commands and edges refuse this URL here")


@click.command(cls=EdgeCommand)
@functools.partial(plain_command, check=_note_files)
def config(options: Options) -> None:
    """Show the settings in effect and where each comes from.

    Secrets are masked. Later sources override earlier ones: defaults, file, environment, flags.
    """
    settings = options.settings
    tree = settings.masked()
    tree["edges"] = {
        name: mask(settings.edge(edge).model_dump(mode="json")) for name, edge in edges().items()
    }
    tree["sysv"] = settings.section(SysvSettings, "sysv", {}).model_dump(mode="json")
    tree["console"] = console_settings(options).model_dump(mode="json")
    output = Output(as_json=options.as_json)
    origin_of = {path: settings.origin(*path) for path, _ in _leaves(tree)}
    if output.as_json:
        origins = {".".join(path): origin for path, origin in origin_of.items() if origin}
        output.record({"settings": tree, "origins": origins})
        return
    rows = [(".".join(path), _text(value), origin_of[path] or "default") for path, value in _leaves(tree)]
    output.table(("setting", "value", "from"), rows)


def _leaves(tree: Tree, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*path, name))
        else:
            yield (*path, name), value


def _text(value: Any) -> str:
    if value is None or value in ([], {}):
        return "-"
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
