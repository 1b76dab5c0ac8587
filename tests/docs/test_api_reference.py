"""Check that the pages of the Python API show every public name with its documentation, and that their examples run."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path

import griffe
import pytest

from services.redis_stream.options import _NAMES as OPTIONS
from tests.docs.blocks import blocks
from tests.servers import Server
from tools.site.places import ROOT

FOLDER = "docs/reference/api"
PAGES = sorted(path.stem for path in (ROOT / FOLDER).glob("*.md") if path.stem != "index")
PROTOCOLS = [page for page in PAGES if (ROOT / "protos" / page).is_dir()]
DIRECTIVE = re.compile(r"^::: (\S+)$", re.M)
EXAMPLE_URL = "redis://127.0.0.1:6379"


def names(page: str) -> list[str]:
    return DIRECTIVE.findall((ROOT / FOLDER / f"{page}.md").read_text())


def html(site: Path, page: str) -> str:
    return (site / "reference/api" / page / "index.html").read_text()


@cache
def code() -> griffe.ModulesCollection:
    """Return the code as the site reads it."""
    loader = griffe.GriffeLoader(
        extensions=griffe.load_extensions("tools/site/comments.py"),
        search_paths=[ROOT],
        allow_inspection=False,
    )
    for package in ("protos", "services"):
        loader.load(package)
    loader.resolve_aliases(external=False)
    return loader.modules_collection


def described(name: str) -> griffe.Object:
    found = code()[name]
    return found.final_target if isinstance(found, griffe.Alias) else found


@pytest.mark.parametrize("page", PROTOCOLS)
def test_pages_of_protocols_have_each_exported_name_once(page: str) -> None:
    exported = importlib.import_module(f"protos.{page}").__all__
    assert sorted(names(page)) == sorted(f"protos.{page}.{name}" for name in exported)


def test_page_of_the_store_shows_all_exports() -> None:
    exported = importlib.import_module("services.store").__all__
    shown = {name.rpartition(".")[2] for name in names("store")}
    assert set(exported) <= shown


@pytest.mark.parametrize("page", PAGES)
def test_each_name_is_shown_and_nothing_private(site: Path, page: str) -> None:
    anchors = re.findall(r'<h\d id="([^"]+)" class="doc', html(site, page))
    assert set(names(page)) <= set(anchors)
    assert not [anchor for anchor in anchors if "._" in anchor]


def test_each_name_and_each_public_member_is_documented() -> None:
    for name in (name for page in PAGES for name in names(page)):
        found = described(name)
        assert found.docstring is not None, f"{name} needs a docstring or a comment"
        listed = found.docstring.value
        for member in found.members.values():
            if not member.name.startswith("_") and not member.is_alias:
                is_listed = f"\n    {member.name}: " in listed
                assert member.docstring or is_listed, f"{member.path} needs a docstring or a comment"


def test_members_of_enumerations_are_shown_with_value_and_comment(site: Path) -> None:
    text = re.sub(r"<[^>]+>|\s+", " ", html(site, "tmq"))
    assert re.search(r"REFERENCE\W+'reference' , as the author", text)


def test_pages_show_inherited_methods(site: Path) -> None:
    assert 'id="protos.tmq.Connection.receive"' in html(site, "tmq")
    assert 'id="protos.rqp_mca.Sender.deadline"' in html(site, "rqp_mca")


def test_the_page_of_the_data_source_names_every_option(site: Path) -> None:
    text = html(site, "redis_stream")
    assert [name for name in OPTIONS if f"<code>{name}</code>" not in text] == []


def examples(page: str) -> list[str]:
    return [block.text for block in blocks(f"{FOLDER}/{page}.md") if block.language == "python"]


@pytest.mark.parametrize("page", [page for page in PAGES if page != "store"])
def test_examples_run(page: str) -> None:
    run = [text for text in examples(page) if "pyspark" not in text]  # tests/analytics/spark/test_page.py
    assert run
    for text in run:
        exec(compile(text, f"{page}.md", "exec"), {"__name__": page})


def test_the_example_of_the_store_runs(running: Server) -> None:
    running.empty()
    (text,) = examples("store")
    assert EXAMPLE_URL in text
    exec(compile(text.replace(EXAMPLE_URL, running.url), "store.md", "exec"), {"__name__": "store"})
