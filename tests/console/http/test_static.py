"""Test serving the page's files."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import yarl
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from services.console.contract.problems import Problem
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


async def test_resources_have_few_headers(console: LiveConsole) -> None:
    """Check that scripts and styles lack the security headers of documents, which have no effect on them."""
    for path in ["/main.js", "/style/base.css", "/vendor/plex-sans-400.woff2", "/early.js"]:
        async with console.session.get(console.base + path) as response:
            assert (response.status, response.headers["X-Content-Type-Options"]) == (200, "nosniff")
            assert response.headers["Cache-Control"] == "no-cache"
            assert not (SAFE.keys() - SAFE_PART.keys()) & set(response.headers)
            etag, heads = response.headers["ETag"], response.raw_headers
        assert sum(len(name) + len(value) + 4 for name, value in heads) < 300
        async with console.session.get(console.base + path, headers={"If-None-Match": etag}) as response:
            assert (response.status, "Content-Security-Policy" in response.headers) == (304, False)


async def test_documents_have_all_security_headers(console: LiveConsole) -> None:
    for path in ["/", "/icon.svg", "/nope.js", "/openapi.json"]:
        async with console.session.get(console.base + path) as response:
            assert SAFE.items() <= dict(response.headers).items()


async def test_nothing_else_is_served(console: LiveConsole) -> None:
    for path in ["/../settings.py", "/%2e%2e/settings.py", "/nope", "/__init__.py", "//etc/passwd"]:
        async with console.session.get(yarl.URL(console.base + path, encoded=True)) as response:
            assert response.status == 404
            assert response.headers["Content-Type"] == "application/problem+json"


async def test_hidden_files_and_notes_of_a_folder_are_not_served(tmp_path: Path) -> None:
    (tmp_path / "js").mkdir()
    (tmp_path / "js" / "app.js").write_text("let a = 1;\n" * 100)
    (tmp_path / ".hidden").write_text("x")
    (tmp_path / "notes.md").write_text("x")
    page = Page(tmp_path)
    asked = make_mocked_request("GET", "/js/app.js", {"Accept-Encoding": "gzip"})
    answer = await page.serve(asked)
    assert isinstance(answer, web.Response)
    assert answer.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert isinstance(answer.body, bytes)
    assert gzip.decompress(answer.body) == (tmp_path / "js" / "app.js").read_bytes()
    for path in ("/.hidden", "/notes.md"):
        with pytest.raises(Problem):
            await page.serve(make_mocked_request("GET", path))
