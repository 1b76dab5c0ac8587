"""The files of the page."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from services.console.contract.safe_headers import SAFE, SAFE_PART
from services.console.http.static import Page
from tests.console.live_console import LiveConsole


async def test_the_page(console: LiveConsole) -> None:
    plain = {"Accept-Encoding": "identity"}
    async with console.session.get(console.base, headers=plain) as response:
        assert response.status == 200
        assert response.headers["Content-Type"] == "text/html; charset=utf-8"
        csp = response.headers["Content-Security-Policy"]
        assert "default-src 'self'" in csp
        assert "frame-ancestors 'none'" in csp
        assert "unsafe" not in csp
        assert response.headers["Referrer-Policy"] == "no-referrer"
        etag, whole = response.headers["ETag"], await response.read()
    async with console.session.get(console.base, headers={"If-None-Match": etag}) as response:
        assert (response.status, await response.read()) == (304, b"")
    async with console.session.get(console.base, headers={"Accept-Encoding": "br, gzip"}) as response:
        body = await response.read()
        assert response.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(body) == whole
        assert response.headers["Vary"] == "Accept-Encoding"


@pytest.mark.parametrize("path", ["/main.js", "/style/base.css", "/vendor/plex-sans-400.woff2", "/early.js"])
async def test_what_is_no_document_has_no_headers_of_one(console: LiveConsole, path: str) -> None:
    """There are many of them, and to a script or a style these would do nothing."""
    async with console.session.get(console.base + path) as response:
        assert (response.status, response.headers["X-Content-Type-Options"]) == (200, "nosniff")
        assert response.headers["Cache-Control"] == "no-cache"
        assert not (SAFE.keys() - SAFE_PART.keys()) & set(response.headers)
        etag, heads = response.headers["ETag"], response.raw_headers
    assert sum(len(name) + len(value) + 4 for name, value in heads) < 300
    async with console.session.get(console.base + path, headers={"If-None-Match": etag}) as response:
        assert (response.status, "Content-Security-Policy" in response.headers) == (304, False)


@pytest.mark.parametrize("path", ["/", "/icon.svg", "/nope.js", "/openapi.json"])
async def test_what_a_browser_can_be_led_to_has_all_of_them(console: LiveConsole, path: str) -> None:
    async with console.session.get(console.base + path) as response:
        assert SAFE.items() <= dict(response.headers).items()


@pytest.mark.parametrize(
    "path", ["/../settings.py", "/%2e%2e/settings.py", "/nope", "/__init__.py", "//etc/passwd"]
)
async def test_nothing_else_is_served(console: LiveConsole, path: str) -> None:
    import yarl

    async with console.session.get(yarl.URL(console.base + path, encoded=True)) as response:
        assert response.status == 404
        assert response.headers["Content-Type"] == "application/problem+json"


async def test_what_is_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "js").mkdir()
    (tmp_path / "js" / "app.js").write_text("let a = 1;\n" * 100)
    (tmp_path / ".hidden").write_text("x")
    (tmp_path / "notes.md").write_text("x")
    page = Page(tmp_path)
    assert list(page._files) == ["js/app.js"]
    file = page._files["js/app.js"]
    assert file.kind == "text/javascript; charset=utf-8"
    assert file.compressed is not None
    assert gzip.decompress(file.compressed) == file.content
