"""The Redis function library: the files of `services/store/lua`, in the order of their dependencies."""

from functools import cache
from importlib import resources
from typing import Any

LIBRARY = "penstock1"  # an incompatible change gets a new number and is loaded beside the old library
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
    "ring_requests",
    "sends",
    "work",
    "sessions",
    "samples",
    "queue_upkeep",
    "links",
    "retention",
    "admin",
    "redrive",
    "empty",
    "registry",
    "ids",
    "exports",
)
# files that export only entries of FUNCTIONS
ENCLOSED = frozenset(
    ("ring_requests", "samples", "queue_upkeep", "admin", "redrive", "empty", "registry", "ids")
)


@cache
def source() -> str:
    """Return the library's source for FUNCTION LOAD."""
    folder = resources.files("services.store").joinpath("lua")
    parts = [_enclosed(name, folder.joinpath(f"{name}.lua").read_text("utf-8")) for name in FILES]
    return f"#!lua name={LIBRARY}\n" + "\n".join(parts)


def loaded(listed: list[list[Any]]) -> dict[bytes, Any]:
    """Return the fields of the library in a reply to FUNCTION LIST, {} if it is not loaded."""
    return dict(zip(listed[0][::2], listed[0][1::2], strict=True)) if listed else {}


def _enclosed(name: str, text: str) -> str:
    """Put a file into a block: Lua limits a chunk to 200 local names, without those in blocks."""
    return f"do\n{text}end" if name in ENCLOSED else text
