"""Commands in the middle of a sentence: whatever a page says can be typed is there to be typed."""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections.abc import Iterator

import click
import pytest

from services.cli.main import penstock
from tests.docs.blocks import pages
from tests.docs.test_pages import FENCE
from tests.tmq.process import ROOT

SPAN = re.compile(r"`([^`]+)`")
SPAN_OF_PAGE = re.compile(r"<code>([^<]+)</code>")  # of the console
TARGET = re.compile(r"^([a-z][a-z0-9-]*):", re.M)
HISTORY = {"CHANGELOG.md"}  # tells what was
SAYING = {".py", ".js", ".html", ".yaml", ".json", ".tpl", ".txt"}


def spoken(page: str) -> Iterator[list[str]]:
    """Words of each command; what is cut off (`...`) ends it."""
    text = FENCE.sub("", (ROOT / page).read_text())
    for line in SPAN.findall(text):
        try:
            words = shlex.split(" ".join(line.split()))
        except ValueError:  # a part of one
            continue
        if words[:1] in (["penstock"], ["make"]) or words[:2] == ["python", "-m"]:
            yield words


def complaint(words: list[str]) -> str:
    """Why it cannot be typed; '' if it can."""
    match words:
        case ["penstock", *rest]:
            return _unknown(rest)
        case ["make", *rest]:
            targets = set(TARGET.findall((ROOT / "Makefile").read_text())) | {".venv/.ready"}
            return ", ".join(word for word in rest if "=" not in word and word not in targets)
        case ["python", "-m", module, *_]:
            return "" if importlib.util.find_spec(module) else module
    return ""


def _unknown(words: list[str]) -> str:
    command: click.Command = penstock
    context = click.Context(command)
    for word in words:
        if isinstance(command, click.Group) and not word.startswith("-"):
            if word.isupper():  # whichever
                return ""
            found = command.get_command(context, word)
            if found is None:
                return word
            command = found
        elif word.startswith("--") and word.partition("=")[0] not in _options(command):
            return word
    return ""


def _options(command: click.Command) -> set[str]:
    own = {
        option
        for each in command.params
        if isinstance(each, click.Option)
        for option in each.opts + each.secondary_opts
    }
    return own | {"--help", "--version"}


def told_elsewhere() -> Iterator[tuple[str, list[str]]]:
    """What programs, the chart and the console's page say of commands of ours, and where."""
    for folder in ("services", "operator", "charts"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in SAYING or "vendor" in path.parts:
                continue
            text = path.read_text()
            for line in [*SPAN.findall(text), *SPAN_OF_PAGE.findall(text)]:
                if line.startswith("penstock ") and not any(sign in line for sign in "\n${"):
                    yield str(path.relative_to(ROOT)), line.split()


def test_what_programs_say_can_be_typed() -> None:
    told = list(told_elsewhere())
    assert {path: " ".join(words) for path, words in told if complaint(words)} == {}
    assert len(told) > 40
    assert any(path.endswith(".js") for path, _ in told)


@pytest.mark.parametrize("page", [page for page in pages() if page not in HISTORY])
def test_what_is_said_can_be_typed(page: str) -> None:
    said = {" ".join(words): complaint(words) for words in spoken(page)}
    assert {line: why for line, why in said.items() if why} == {}


@pytest.mark.parametrize(
    "line",
    ["penstock queues list", "penstock put orders --retries 3", "make teste", "python -m services.nobody"],
)
def test_what_there_is_not_would_be_noticed(line: str) -> None:
    assert complaint(line.split())
