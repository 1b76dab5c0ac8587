"""The administrator's token of a console without set-up: made once, kept in the data folder, and shown as a link."""

from __future__ import annotations

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

from services.kit.layers import SettingsError

FILE = "console.token"  # in the data folder
OCTETS = 32  # random ones


def keep(folder: Path) -> Path:
    """Return the file of the token; make both folder and token if they do not exist. Raises SettingsError."""
    file = folder.absolute() / FILE
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not file.exists():
            _make(file)
    except OSError as error:
        text = (
            f"console: the token cannot be kept in {file}: {error.strerror}; set store.data_dir to a folder that can "
            "be written, or set console.tokens or console.proxy"
        )
        raise SettingsError([text]) from None
    return file


def _make(file: Path) -> None:
    """Write a new token with mode 0600. Several consoles may do this at once: the first one wins."""
    number, fresh = tempfile.mkstemp(dir=file.parent, prefix=f"{FILE}.")
    try:
        with open(number, "w") as opened:
            opened.write(secrets.token_urlsafe(OCTETS) + "\n")
        with suppress(FileExistsError):
            os.link(fresh, file)
    finally:
        os.unlink(fresh)


def link(url: str, file: Path) -> str:
    """Return the address of the page with the token in its fragment, which browsers send to no server."""
    return f"{url}#token={file.read_text().strip()}"


def shown(url: str, file: Path, *, at_terminal: bool) -> str:
    """Return what a person is told: the link at a terminal; elsewhere, as in a log, only where the token is."""
    return link(url, file) if at_terminal else f"{url} (token in {file})"
