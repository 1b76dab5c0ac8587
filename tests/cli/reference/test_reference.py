"""Test that docs/reference/cli.md lists every command and every option."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from services.cli.main import MODULES
from services.cli.reference import commands_table as reference
from tests.cli.shell import Shell

DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "cli.md"
OPTION = re.compile(r"^  (?:-h, )?(--[a-z-]+)", re.M)


def section(command: str) -> str:
    text = DOCUMENT.read_text().partition(f" penstock {command}\n")[2]
    return re.split(r"^##+ ", text, maxsplit=1, flags=re.M)[0]


def test_page_is_current() -> None:
    advice = "run `make cli-reference`"
    assert DOCUMENT.read_text() == reference.page(), advice


def test_page_has_every_command() -> None:
    output = set(re.findall(r"^## penstock (\w+)$", DOCUMENT.read_text(), re.M))
    assert output == MODULES.keys()


@pytest.mark.parametrize("command", ["up", "queue create", "dead redrive", "sysv", "store rights"])
def test_page_has_the_options_of_help(alone: Shell, command: str) -> None:
    """Check that the page has the options of `--help`, including those of edges."""
    there = set(OPTION.findall(alone.run(*command.split(), "--help").text)) - {"--help"}
    assert set(re.findall(r"^\| `(--[a-z-]+)", section(command), re.M)) == there
