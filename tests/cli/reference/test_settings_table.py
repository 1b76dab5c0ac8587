"""Test that docs/settings.md lists every setting."""

from __future__ import annotations

import re
from pathlib import Path

from services.cli.reference import settings_table
from services.kit.config.settings import GlobalSettings
from services.kit.edge import edges
from tests.cli.shell import Shell

DOCUMENT = Path(__file__).parents[3] / "docs" / "settings.md"
LISTENER = re.compile(r"\.listeners\.\w+")


def table() -> dict[str, list[str]]:
    """Return path -> default, allowed values, meaning."""
    lines = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {path.strip("`"): rest for path, *rest in cells}


def test_page_is_current() -> None:
    assert DOCUMENT.read_text() == settings_table.page(), "run `make settings-docs`"


def test_page_explains_every_setting(alone: Shell) -> None:
    rows = table()
    for path in alone.run("config").text.splitlines()[2:]:
        name = LISTENER.sub(".listeners.<listener>", path.split()[0])
        assert name in rows or any(path.startswith(f"{name}.<") for path in rows)
    assert {path.partition(".")[0] for path in rows} == set(GlobalSettings.model_fields)
    assert {path.split(".")[1] for path in rows if path.startswith("edges.")} == edges().keys()
    assert all(meaning and allowed and default for default, allowed, meaning in rows.values())


def test_page_shows_defaults_and_ranges() -> None:
    rows = table()
    listener = "edges.tmq.listeners.<listener>"
    assert rows[f"{listener}.port"][:2] == [
        "document: `6161`, reference: `6162`",
        "whole number from 0 to 65535",
    ]
    assert rows[f"{listener}.dialect"][1] == "`document`, `reference`"
    assert rows[f"{listener}.tls.min_version"][:2] == ["`'1.2'`", "`'1.2'`, `'1.3'`"]
    assert rows[f"{listener}.tls.key"][0] == "required"
    assert rows["edges.tmq.max_message_bytes"][:2] == [
        "`1048576` (1 MiB)",
        "whole number from 1 to 15 MiB",
    ]
    assert rows["store.url"][:2] == ["-", "URL"]
