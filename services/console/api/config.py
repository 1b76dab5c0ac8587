"""The settings of this process, and whence each comes. Edges of other processes may have others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from services.console.core.route import Answer, Call

Tree = dict[str, Any]


async def show(call: Call) -> Answer:
    settings = call.console.everything
    tree = settings.masked()
    tree["console"] = call.console.settings.model_dump(mode="json")
    told = {path: settings.origin(*path) for path in _leaves(tree)}
    origins = {".".join(path): origin for path, origin in told.items() if origin is not None}
    return Answer({"settings": tree, "origins": origins})


def _leaves(tree: Tree, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in tree.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*path, name))
        else:
            yield (*path, name)
