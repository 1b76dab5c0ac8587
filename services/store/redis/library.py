"""The function library: the Lua files of this folder, in the order in which they build on each other."""

from functools import cache
from importlib import resources
from typing import Any

LIBRARY = "penstock1"  # versioned: a changed contract is a new library beside the old one
FILES = (
    "clock",
    "schema",
    "queues",
    "log",
    "large",
    "publish",
    "gather",
    "take",
    "settle",
    "commit",
    "requests",
    "sends",
    "work",
    "sessions",
    "samples",
    "upkeep",
    "links",
    "retention",
    "admin",
    "redrive",
    "empty",
    "registry",
    "ids",
    "exports",
)
ENCLOSED = (
    "requests",
    "samples",
    "upkeep",
    "admin",
    "redrive",
    "empty",
    "registry",
    "ids",
)  # what they offer stands in FUNCTIONS; all else is their own


@cache
def source() -> str:
    """Return the whole library as FUNCTION LOAD takes it."""
    folder = resources.files("services.store").joinpath("lua")
    parts = [_enclosed(name, folder.joinpath(f"{name}.lua").read_text("utf-8")) for name in FILES]
    return f"#!lua name={LIBRARY}\n" + "\n".join(parts)


def loaded(listed: list[list[Any]]) -> dict[bytes, Any]:
    """What FUNCTION LIST answered of the library, by field; {} if it is not there."""
    return dict(zip(listed[0][::2], listed[0][1::2], strict=True)) if listed else {}


def _enclosed(name: str, text: str) -> str:
    """Lua allows 200 local names at the top: those of a block are not among them."""
    return f"do\n{text}end" if name in ENCLOSED else text
