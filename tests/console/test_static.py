"""The files of the page."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from services.console.static import Page
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
