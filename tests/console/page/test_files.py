"""Test the page's files: vendored code, imports, size, and no HTML from strings."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from functools import cache
from pathlib import Path

import pytest

from services.console.contract.safe_headers import CSP
from tools.vendor import IMPORTS, PLACES, RECORD, Package

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "services/console/page"
OURS = sorted(path for path in PAGE.rglob("*.js") if "vendor" not in path.parts)
MOST_OCTETS = 200_000  # of the whole page, over the wire
LONGEST = 250  # lines
DANGEROUS = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySet|eval\(|new Function|srcdoc"
)
STATIC = re.compile(r'(?<!")\b(?:from|import)\s*"([^"]+)"')
IMPORT = re.compile(r'(?<!")\b(?:from|import)\s*\(?"([^"]+)"')


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.relative_to(ROOT).as_posix())
def test_vendored_files_are_what_the_tool_wrote(place: Path) -> None:
    record = json.loads((place / RECORD).read_text())
    wanted = {name: digest for package in record.values() for name, digest in package["files"].items()}
    there = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in place.iterdir()
        if path.name != RECORD
    }
    assert there == wanted


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.relative_to(ROOT).as_posix())
def test_record_lists_the_tools_packages(place: Path) -> None:
    record = json.loads((place / RECORD).read_text())
    assert {name: (each["version"], set(each["files"])) for name, each in record.items()} == {
        package.name: (package.version, _files(package)) for package in PLACES[place]
    }


def _files(package: Package) -> set[str]:
    return {*package.files.values(), package.licence_here}


def test_imported_files_exist() -> None:
    for path in PAGE.rglob("*.js"):
        for specifier in IMPORT.findall(path.read_text()) if path in OURS else []:
            assert (path.parent / specifier).resolve().is_relative_to(PAGE), f"{path}: {specifier}"
            assert (path.parent / specifier).is_file(), f"{path}: {specifier}"
    for name in IMPORTS.values():
        assert (PAGE / "vendor" / name).is_file()


def test_first_modules_are_preloaded() -> None:
    """Check that the first views' modules are preloaded: browsers find others only when their importer has loaded."""
    named = set(re.findall(r'modulepreload" href="([^"]+)"', (PAGE / "index.html").read_text()))
    first = [PAGE / "views/overview.js", PAGE / "views/queues.js"]
    needed = {path for start in [PAGE / "main.js", *first] for path in _imported(start)} | {*first}
    assert named == {path.relative_to(PAGE).as_posix() for path in needed}


@cache
def _imported(path: Path) -> frozenset[Path]:
    """Return the transitive static imports of a module."""
    found = {(path.parent / each).resolve() for each in STATIC.findall(path.read_text())}
    return frozenset(found | {further for each in found for further in _imported(each)})


def test_registered_views_exist() -> None:
    text = (PAGE / "views/registry.js").read_text()
    views = re.findall(r'file: "(\w+)", name: "(\w+)"', text)
    assert len(views) == text.count("file: ") > 10
    for file, name in views:
        assert f"export function {name}(" in (PAGE / f"views/{file}.js").read_text()


def test_no_string_becomes_html() -> None:
    assert [path.name for path in OURS if DANGEROUS.search(path.read_text())] == []


def test_no_external_resources() -> None:
    for path in [*OURS, PAGE / "index.html", *PAGE.glob("style/*.css")]:
        assert not re.search(
            r"https?://|//[a-z]+\.[a-z]+/", path.read_text().replace("http://www.w3.org/", "")
        ), path


def test_no_inline_scripts_or_styles() -> None:
    assert "unsafe" not in CSP
    assert not re.search(r"<script>|<style|\sstyle=|\son[a-z]+=", (PAGE / "index.html").read_text())


def test_page_size_limit() -> None:
    sizes = [
        _wire(path) for path in PAGE.rglob("*") if path.suffix in (".js", ".css", ".html", ".woff2", ".svg")
    ]
    assert sum(sizes) <= MOST_OCTETS


def _wire(path: Path) -> int:
    data = path.read_bytes()
    return len(data) if path.suffix == ".woff2" else len(gzip.compress(data, 9))


def test_scripts_have_a_header_comment_and_a_length_limit() -> None:
    for path in OURS:
        lines = path.read_text().splitlines()
        assert lines[0].startswith("// "), path
        assert len(lines) <= LONGEST, path
