"""Test docs/console.md: routes, labels, and the output of commands."""

from __future__ import annotations

import re
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.console.contract.problems import STATUSES
from services.console.contract.roles import Role
from services.console.routes import ROUTES
from services.console.settings import ConsoleSettings
from tests.cli.shell import Shell, Up, running
from tests.docs.bench import commands

ROOT = Path(__file__).parents[3]
PAGE = "docs/console.md"
TEXT = (ROOT / PAGE).read_text()
DIFFERS = (  # differs between runs
    (re.compile(r'"oldestAgeMs":\d+'), '"oldestAgeMs":0'),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"), "TIME"),
    (re.compile(r'"next":"[\w-]+"'), '"next":"CURSOR"'),
    (re.compile(r'"(in|out|acked|returned|died)":[\d.]+'), r'"\1":null'),
)


def test_routes_are_documented() -> None:
    for route in ROUTES:
        row = f"| `{route.method} {route.path}` | {route.role or 'any'} | {route.text} |"  # type: ignore[attr-defined]
        assert row in TEXT


def test_labels_are_documented() -> None:
    for kind, status in STATUSES[:-1]:
        assert re.search(rf"^\|[^|]*\b{status}\b[^|]*\|[^|]*`{kind.reason}`", TEXT, re.M), kind


def test_roles_are_documented() -> None:
    for role in Role:
        assert f"| `{role}` |" in TEXT


def samples() -> list[tuple[str, dict[str, Any]]]:
    """Return all settings of a console in the documentation."""
    found = []
    for page in sorted(
        [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "charts").rglob("*.md")]
    ):
        for text in re.findall(r"^```ya?ml\n(console:\n.*?)^```$", page.read_text(), re.M | re.S):
            found.append((page.name, yaml.safe_load(text)["console"]))
    return found


def test_samples_contain_no_known_token() -> None:
    """Check that samples have a placeholder instead of a digest, which the console refuses."""
    found = samples()
    assert "console.md" in [page for page, _ in found]
    for page, sample in found:
        results = [token for token in sample.get("tokens", []) if "sha256" in token]
        if results:
            with pytest.raises(ValueError, match="SHA-256 digest"):
                ConsoleSettings.model_validate(sample)
        for token in results:
            token["sha256"] = secrets.token_hex(32)
        assert ConsoleSettings.model_validate(sample), page


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    with running(Shell(tmp_path)) as up:
        yield up


def alike(text: str) -> str:
    for pattern, instead in DIFFERS:
        text = pattern.sub(instead, text)
    return text.strip()


def test_its_commands(up: Up, tmp_path: Path) -> None:
    place = up.announcement["console"]["url"].rstrip("/").replace("127.0.0.1", "localhost")
    found = list(commands(PAGE, "## Quick start"))
    assert len(found) > 4
    for command in found:
        line = command.line.replace("http://localhost:9180", place)
        done = subprocess.run(
            ["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
        )
        assert alike(done.stdout) == alike(command.shown), command.line
