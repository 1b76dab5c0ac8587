"""Provide the local token that tests give to consoles."""

from __future__ import annotations

from pathlib import Path

from services.console.access.local_token import FILE

TOKEN = "a-token-that-all-tests-share-0123456789"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
LINE = b"Authorization: Bearer %s\r\n" % TOKEN.encode()  # header line of a request written by hand


def keep(folder: Path) -> Path:
    """Write the token to a data folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(TOKEN)
    (folder / FILE).chmod(0o600)
    return folder
