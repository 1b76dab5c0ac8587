"""Convert CommonMark that code hosts accept to Markdown that Python-Markdown reads alike; rewrite links."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

FENCE = re.compile(r"^ *(`{3,})")
ITEM = re.compile(r"^( *)([-*]|\d+\.) +")
TABLE = re.compile(r"^ *\|")
# the target of a link outside code: the first alternative matches code, to skip it
LINK = re.compile(r"(`+)(?:(?!\1).)+?\1|(?P<before>\]\()(?P<target>[^)\s]+)(?P<after>\))", re.S)


def slug(heading: str, separator: str = "-") -> str:
    """Return the anchor of a heading as code hosts make it: each space becomes a hyphen."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", separator)


def with_links(text: str, resolved: Callable[[str], str]) -> str:
    """Return the page with its links passed through `resolved`. Code is left unchanged."""

    def changed(found: re.Match[str]) -> str:
        if found["target"] is None:
            return found[0]
        return found["before"] + resolved(found["target"]) + found["after"]

    return "\n".join(
        part if is_code else LINK.sub(changed, part) for is_code, part in _parts(text.splitlines())
    )


def _parts(lines: list[str]) -> Iterator[tuple[bool, str]]:
    """Yield the parts outside and inside of fenced code."""
    fence, gathered = "", list[str]()
    for line in lines:
        found = FENCE.match(line)
        if found and not fence:
            yield False, "\n".join(gathered)
            fence, gathered = found[1], [line]
        elif found and line.strip() == fence:
            yield True, "\n".join([*gathered, line])
            fence, gathered = "", []
        else:
            gathered.append(line)
    yield bool(fence), "\n".join(gathered)


def with_room(text: str) -> str:
    """Put an empty line before lists and tables, and indent the contents of items by four."""
    said: list[str] = []
    contents: list[int] = []  # at which column the contents of each open item begin
    fence = ""
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        found = FENCE.match(line)
        if not fence:
            if _begins(line, contents, said):
                said.append("")
            contents = _still_open(contents, line, indent, said)
        depth = sum(1 for column in contents if column <= indent) if line.strip() else 0
        shift = 4 * depth - (contents[depth - 1] if depth else 0)
        said.append(" " * max(indent + shift, 0) + line.lstrip() if line.strip() else "")
        if found and not fence:
            fence = found[1]
        elif found and line.strip() == fence:
            fence = ""
        elif not fence and (item := ITEM.match(line)):
            contents = [*contents[:depth], len(item[0])]
    return "\n".join(said) + "\n"


def _still_open(contents: list[int], line: str, indent: int, said: list[str]) -> list[int]:
    """Return the open list items that the line belongs to; text right below an item continues it."""
    after_a_gap = bool(said) and not said[-1].strip()
    if not line.strip() or not (after_a_gap or ITEM.match(line) or TABLE.match(line) or FENCE.match(line)):
        return contents
    return [column for column in contents if column <= indent]


def _begins(line: str, contents: list[int], said: list[str]) -> bool:
    """Return whether a list or table begins right below text outside it. contents: columns of the open items."""
    before = said[-1] if said else ""
    if not before.strip():
        return False
    if TABLE.match(line):
        return not TABLE.match(before)
    return bool(ITEM.match(line)) and not contents
