"""The administrator's token of a console without set-up: made once, kept in the data folder, and shown as a link."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from services.kit.config import SettingsError
from services.outside.owner import is_trusted

FILE = "console.token"  # in the data folder
OCTETS = 32  # random ones
OTHERS = stat.S_IRWXG | stat.S_IRWXO  # permissions of everyone but the owner
OR_NONE = "or set console.tokens or console.proxy, or console.enabled: false"
MOST = 4097  # octets that are read: one more than a token may have


def keep(folder: Path) -> Path:
    """Return the file of the token; make both folder and token if they do not exist.

    Raises SettingsError, also for a file that another user could have written or read.
    """
    file = folder.absolute() / FILE
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not os.path.lexists(file):
            _make(file)
    except OSError as error:
        text = (
            f"console: the token cannot be kept in {file}: {error.strerror}; set store.data_dir to a folder that can "
            f"be written, {OR_NONE}"
        )
        raise SettingsError([text]) from None
    read(file)
    return file


def read(file: Path) -> bytes:
    """Return the token. Raises SettingsError unless it is a regular file of a trusted owner, with no access for others.

    The data folder may be in a place where others can write, such as /tmp.
    """
    try:
        # a link is not followed, and a named pipe does not block
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        found = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
        raise _unsafe(file, str(found)) from None
    with open(descriptor, "rb") as opened:
        if problem := _problem(os.fstat(descriptor)):
            raise _unsafe(file, problem)
        return opened.read(MOST).strip()


def _problem(found: os.stat_result) -> str:
    """Return why the file is not trusted, or ''."""
    if not stat.S_ISREG(found.st_mode):
        return "it is not a regular file"
    if not is_trusted(found.st_uid):
        return f"it belongs to uid {found.st_uid}, this is uid {os.geteuid()}"
    if found.st_mode & OTHERS:
        return f"other users have access to it (mode {stat.S_IMODE(found.st_mode):04o})"
    return ""


def _unsafe(file: Path, problem: str) -> SettingsError:
    text = (
        f"console: the token in {file} is not used: {problem}; remove it and a new one is made, or set "
        f"store.data_dir to a folder of your own, {OR_NONE}"
    )
    return SettingsError([text])


def _make(file: Path) -> None:
    """Write a new token with mode 0600. Several consoles may do this at once: the first one wins."""
    number, fresh = tempfile.mkstemp(dir=file.parent, prefix=f"{FILE}.")
    try:
        with open(number, "w") as opened:
            _check_mode(file, os.fstat(number).st_mode)
            opened.write(secrets.token_urlsafe(OCTETS) + "\n")
        with suppress(FileExistsError):
            os.link(fresh, file)
    finally:
        os.unlink(fresh)


def _check_mode(file: Path, mode: int) -> None:
    """Raise SettingsError if a file that was just made for its owner alone is open to others."""
    if mode & OTHERS:
        text = (
            f"console: the token cannot be kept in {file}: its file system keeps no permissions (a new file for its "
            f"owner alone has mode {stat.S_IMODE(mode):04o}); set store.data_dir to a folder on another one, {OR_NONE}"
        )
        raise SettingsError([text])


def link(url: str, file: Path) -> str:
    """Return the address of the page with the token in its fragment, which browsers send to no server."""
    return f"{url}#token={read(file).decode()}"


def shown(url: str, file: Path, *, at_terminal: bool) -> str:
    """Return what a person is told: the link at a terminal; elsewhere, as in a log, only where the token is."""
    return link(url, file) if at_terminal else f"{url} (token in {file})"
