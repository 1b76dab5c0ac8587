"""Find the fenced blocks of all pages, and tell which of them are commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from tests.tmq.process import ROOT

PATTERNS = ("*.md", "docs/**/*.md", "charts/**/*.md", "protos/**/*.md", "tests/**/*.md", "services/**/*.md")
FENCE = re.compile(r"^( *)(```+|~~~+)(.*)$")
HEADING = re.compile(r"^(#+) (.*)$")
INDENTED = re.compile(r"^ {4}(\S+)")
VERSION = re.compile(r"penstock \d")  # first output of `penstock up`
LIST = re.compile(r"^ *([-*+]|\d+\.) ")
SHELLS = {"sh", "bash", "shell", "console"}
# first words of a command without `$`; `sum` and `time` are also PromQL's
PROGRAMS = {
    "bash", "cd", "curl", "docker", "echo", "export", "git", "helm", "kubectl", "make", "nc", "openssl", "penstock",
    "pip", "podman", "printf", "python", "python3", "redis-cli", "sh", "skaffold", "spark-submit", "sudo", "valkey-cli",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Block:
    page: str
    section: str  # the nearest heading above the block, at any depth
    line: int
    language: str
    text: str

    @property
    def is_command(self) -> bool:
        if self.language in SHELLS:
            return True
        return self.language == "" and any(_is_command(line) for line in self.text.splitlines())

    @property
    def first(self) -> str:
        """Return the first command of the block."""
        lines = [line for line in self.text.splitlines() if line.strip() and not line.startswith("#")]
        return lines[0].removeprefix("$ ")

    def __str__(self) -> str:
        return f"{self.page}:{self.line} ({self.section}): {self.first}"


def _is_command(line: str) -> bool:
    if VERSION.match(line):
        return False
    word = line.partition(" ")[0]
    return line.startswith("$ ") or word in PROGRAMS or word.startswith((".venv/", "./"))


@cache
def pages() -> list[str]:
    found = {path for pattern in PATTERNS for path in ROOT.glob(pattern) if "node_modules" not in path.parts}
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def blocks(page: str) -> Iterator[Block]:
    """Yield the blocks of a page in order. Raises ValueError for a block that does not end."""
    section, fence, began = "", "", None
    inside: list[str] = []
    for number, line in enumerate((ROOT / page).read_text().splitlines(), 1):
        found = FENCE.match(line)
        if began is None and found:
            fence, began = found[2], (number, found[3].strip())
            inside = []
        elif began is not None and found and found[2].startswith(fence) and not found[3].strip():
            yield Block(page, section, began[0], began[1].partition(" ")[0], "\n".join(inside) + "\n")
            began = None
        elif began is not None:
            inside.append(line)
        elif heading := HEADING.match(line):
            section = heading[2]
    if began is not None:
        raise ValueError(f"{page}: the block of line {began[0]} does not end")


def chains_of(page: str) -> Iterator[list[str]]:
    """Yield each heading of a page with the headings above it, the outermost first."""
    chain: list[str] = []
    fence = ""
    for line in (ROOT / page).read_text().splitlines():
        if found := FENCE.match(line):
            fence = "" if fence and found[2].startswith(fence) and not found[3].strip() else fence or found[2]
        elif not fence and (heading := HEADING.match(line)):
            depth = len(heading[1])
            chain = [*(each for each in chain if len(each) - len(each.lstrip("#")) < depth), line]
            yield chain


def without_fence(page: str) -> Iterator[str]:
    """Yield the first lines of blocks that only their indentation marks, outside of lists."""
    fenced, is_listed, before = False, False, ""
    for line in (ROOT / page).read_text().splitlines():
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            if LIST.match(line) or (line and not line.startswith(" ")):
                is_listed = bool(LIST.match(line))
            if not is_listed and not before.strip() and INDENTED.match(line):
                yield line
        before = line
