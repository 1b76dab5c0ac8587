"""Handler of the settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from services.console.core.route import Answer, Call

Tree = dict[str, Any]


async def show(call: Call) -> Answer:
    """Show the settings of this process, with secrets masked, and their sources."""
    settings = call.console.everything
    tree = settings.masked()
    tree["console"] = call.console.settings.model_dump(mode="json")
    found = {path: settings.origin(*path) for path in _leaves(tree)}
    origins = {".".join(path): origin for path, origin in found.items() if origin is not None}
    return Answer({"settings": tree, "origins": origins})


def _leaves(tree: Tree, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in tree.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*path, name))
        else:
            yield (*path, name)
