"""Check that kubectl commands name Penstock's resources with their group: other products have queues and peers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest

from tests.tmq.process import ROOT

SOURCES = ("docs", "charts", "services", "operator", "tools", "benchmarks", "*.md")
SUFFIXES = {".md", ".txt", ".tpl", ".yaml", ".yml", ".py", ".js", ".sh", ".json"}
COMMAND = re.compile(r"kubectl ([^`\n]+)")
TAKES_KINDS = {"get", "describe", "delete", "patch", "edit", "wait", "annotate", "label", "explain", "scale"}
WITH_VALUE = {"-n", "--namespace", "-l", "--selector", "-o", "--output", "-f", "--filename", "-p", "--patch"}
BARE = {"queue", "queues", "pq", "peer", "peers", "pp", "redrive", "redrives", "pr"}


def bare_kinds(command: str) -> list[str]:
    """Return the kinds of Penstock's that the words after `kubectl` name without their group."""
    try:
        words = shlex.split(command, comments=True)
    except ValueError:  # part of a sentence
        words = command.split()
    verb, *rest = words or [""]
    if verb not in TAKES_KINDS:
        return []
    values = {index + 1 for index, word in enumerate(rest) if word in WITH_VALUE}
    named = [word for index, word in enumerate(rest) if index not in values and not word.startswith("-")]
    kinds = [kind for word in named[:1] for kind in word.split("/")[0].split(",")]
    kinds += [word.split("/")[0] for word in named[1:] if "/" in word]
    return [kind for kind in kinds if kind.strip(".,;:()'\"").lower() in BARE]


def printed() -> Iterator[tuple[str, str]]:
    """Yield every kubectl command that a page, the chart or a program prints, with its file."""
    for source in SOURCES:
        found = ROOT.glob(source) if "*" in source else (ROOT / source).rglob("*")
        for path in sorted(found):
            if path.suffix in SUFFIXES and not {"vendor", "modules", "__pycache__"} & set(path.parts):
                for command in COMMAND.findall(path.read_text("utf-8")):
                    yield str(path.relative_to(ROOT)), command


def test_printed_commands_name_the_group_of_our_resources() -> None:
    commands = list(printed())
    assert [(path, command) for path, command in commands if bare_kinds(command)] == []
    assert sum("queues.penstock.dev" in command for _, command in commands) > 5


@pytest.mark.parametrize(
    ("command", "is_bare"),
    [
        ("get queues --all-namespaces", True),
        ("delete queues.penstock.dev,peers --all --namespace queues", True),
        ("wait --namespace queues --for=condition=Ready queue/orders", True),
        ("patch queue orders --type=merge --patch '{}'", True),
        ("label namespace queues a=b", False),
        ("get queues.penstock.dev -n queues", False),
        ("exec POD -- penstock queue list", False),
        ("wait --for=condition=Ready peers.penstock.dev/shop", False),
    ],
)
def test_a_bare_name_is_noticed_and_a_full_one_passes(command: str, is_bare: bool) -> None:
    assert bool(bare_kinds(command)) is is_bare
