"""Find the memory limit of this process and its children: the lowest of the machine's and of its control groups'.

Control groups may be of version 1 or 2, and any parent group may have a lower limit. The group's path in `/proc` is
relative to the root of the mounted tree, of which a container sees a part.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20
MACHINE = "this machine"
LIMIT_FILES = {"cgroup2": "memory.max", "cgroup": "memory.limit_in_bytes"}  # by type of file system


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """A memory limit. `source`: this machine, or the file with the limit."""

    octets: int
    source: str


@dataclass(frozen=True, slots=True)
class Share:
    """The part of a limit that one program takes, with the reason."""

    octets: int
    reason: str
    is_short: bool  # the limit is too small for it


def memory_limit(root: Path = Path("/")) -> MemoryLimit:
    """Return the lowest limit. root: the folder with `proc` and `sys`."""
    machine = MemoryLimit(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), MACHINE)
    return min((machine, *_group_limits(root)), key=lambda limit: limit.octets)


def half_of_rest(limit: MemoryLimit, others: int, least: int) -> Share:
    """Return half of what `others` (octets) leave of the limit, but not less than `least`.

    The other half is for an AOF rewrite, which copies pages that change meanwhile.
    """
    half = (limit.octets - others) // 2
    text = f"half of {limit.octets // MIB:,} MiB of {limit.source}"
    if others:
        text += f" less {others // MIB:,} MiB for other processes"
    if half < least:
        return Share(least, f"the least that works; {text} would be less", is_short=True)
    return Share(half, text, is_short=False)


def _group_limits(root: Path) -> Iterator[MemoryLimit]:
    """Yield the limits of the process's group and its visible parents. The root group of version 2 has no limit."""
    for kind, top, path in _groups(root):
        for folder in (top / path, *(top / path).parents):
            if not folder.is_relative_to(top):
                break
            file = folder / LIMIT_FILES[kind]
            try:
                text = file.read_text().strip()
            except OSError:
                continue
            if text.isdecimal():  # else "max"
                yield MemoryLimit(int(text), f"/{file.relative_to(root)}")


def _groups(root: Path) -> Iterator[tuple[str, Path, str]]:
    """Yield each control group tree for memory: its type, its mount point, and the process's path below that."""
    try:
        mounts = (root / "proc/self/mountinfo").read_text().splitlines()
        paths = dict(_paths((root / "proc/self/cgroup").read_text()))
    except OSError:  # not Linux
        return
    for line in mounts:  # id parent device root mountpoint options ... - type source superoptions
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        if kind not in paths or (kind == "cgroup" and "memory" not in options.split(",")):
            continue
        mounted, where = (_unescaped(field) for field in before.split(" ")[3:5])
        path = paths[kind]
        below = path[len(mounted) :] if mounted != "/" and path.startswith(mounted) else path
        yield kind, root / where.lstrip("/"), "" if ".." in below.split("/") else below.lstrip("/")


def _paths(text: str) -> Iterator[tuple[str, str]]:
    """Yield file system type and path of the process's groups; lines are `number:controllers:path`."""
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:  # version 2
            yield "cgroup2", path
        elif "memory" in controllers.split(","):
            yield "cgroup", path


def _unescaped(field: str) -> str:
    """Decode octal escapes, as of spaces."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)
