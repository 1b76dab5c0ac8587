"""Serve the files of the web page, read and compressed once when the process starts."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from services.console.contract.etags import if_none_match
from services.console.contract.problems import not_found

FOLDER = Path(__file__).parents[1] / "page"
INDEX = "index.html"
MIN_COMPRESSED = 256  # octets; shorter files are not compressed
TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}
NOT_SERVED = (".py", ".md", ".gz", ".ts", ".map", ".lock")
DOCUMENTS = ("text/html", "image/svg")  # browsers can open them, and run their scripts
COMPRESSED = ("text/", "application/json", "image/svg")


class Resource(web.Response):
    """A script, style or font."""


@dataclass(frozen=True, slots=True)
class File:
    """A file of the page."""

    content: bytes
    compressed: bytes | None
    kind: str
    etag: str

    def response(self, request: web.Request) -> web.Response:
        """Return the file, compressed if the client accepts that, or 304."""
        answer = web.Response if self.kind.startswith(DOCUMENTS) else Resource
        headers = {"ETag": f"W/{self.etag}", "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if if_none_match(request.headers.get("If-None-Match"), self.etag):
            return answer(status=304, headers=headers)
        headers["Content-Type"] = self.kind
        if self.compressed is not None and _takes_gzip(request.headers):
            return answer(body=self.compressed, headers={**headers, "Content-Encoding": "gzip"})
        return answer(body=self.content, headers=headers)


def _takes_gzip(headers: Mapping[str, str]) -> bool:
    for part in headers.get("Accept-Encoding", "").split(","):
        name, _, weight = part.partition(";")
        if name.strip().lower() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


class Page:
    """All files below a folder, by path."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._files = {
            path.relative_to(folder).as_posix(): _read(path)
            for path in sorted(folder.rglob("*"))
            if path.is_file() and _is_served(path.relative_to(folder))
        }

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Return the file at the request's path. Raises Problem 404."""
        path = request.path.lstrip("/") or INDEX
        found = self._files.get(path)
        if found is None:
            raise not_found(f"no resource at {request.path!r}")
        return found.response(request)


def _is_served(path: Path) -> bool:
    return path.suffix not in NOT_SERVED and not any(part.startswith((".", "__")) for part in path.parts)


def _read(path: Path) -> File:
    content = path.read_bytes()
    kind = TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    small = (
        gzip.compress(content, 9, mtime=0)
        if len(content) >= MIN_COMPRESSED and kind.startswith(COMPRESSED)
        else None
    )
    if small is not None and len(small) >= len(content):
        small = None
    return File(content, small, kind, f'"{hashlib.sha256(content).hexdigest()[:16]}"')
