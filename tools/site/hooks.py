"""Hooks that mkdocs calls while it builds the site (`hooks` in mkdocs.yml)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from tools.site.markdown import slug, with_links, with_room
from tools.site.places import DOCS, PICTURES, ROOT, SOURCES, origin, pages_elsewhere, place, target, way
from tools.site.sources import source_page


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the anchors of code hosts, and replace folders in the navigation by their pages."""
    config.mdx_configs["toc"]["slugify"] = slug
    config.nav = _unfolded(config.nav)
    return config


def _unfolded(entry: Any) -> Any:
    match entry:
        case list():
            return [_unfolded(each) for each in entry]
        case dict():
            return {name: _unfolded(each) for name, each in entry.items()}
        case str() if entry.endswith("/"):
            folder = ROOT / DOCS / entry
            return [f"{entry}{path.name}" for path in sorted(folder.glob("*.md"), key=_index_first)]
    return entry


def _index_first(path: Path) -> tuple[bool, str]:
    return path.name != "index.md", path.name


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages outside docs/, and pages for the source files that pages link to."""
    for path in ("README.md", *pages_elsewhere()):
        files.append(File.generated(config, place(path), content=(ROOT / path).read_text()))
    for path in sorted(_linked(files)):
        if path.endswith(PICTURES):
            files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
        else:
            files.append(File.generated(config, place(path), content=source_page(path)))
    return files


def _linked(files: Files) -> set[str]:
    """Return the files that pages link to and that are neither pages nor copied with docs/."""
    found: set[str] = set()
    for file in files.documentation_pages():
        page = origin(file.src_uri)

        def note(link: str, page: str = page) -> str:
            path = target(link.partition("#")[0], page)
            if path is not None and files.get_file_from_path(place(path)) is None:
                found.add(path)
            return link

        with_links(file.content_string, note)
    return found


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    uri = page.file.src_uri
    if uri.startswith(SOURCES):
        return markdown
    return with_room(with_links(markdown, lambda link: _on_site(link, uri)))


def _on_site(link: str, uri: str) -> str:
    """Return the link for the site; unchanged if it is broken, so that mkdocs reports it."""
    name, sharp, anchor = link.partition("#")
    if not name or "://" in name:
        return link
    path = target(name, origin(uri))
    return link if path is None else way(uri, place(path)) + sharp + anchor
