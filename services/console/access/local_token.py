"""Create and read the administrator's token that is used if neither tokens nor a proxy are configured."""

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
OCTETS = 32  # of randomness
OTHERS = stat.S_IRWXG | stat.S_IRWXO  # permissions of everyone but the owner
ALTERNATIVES = "or set console.tokens or console.proxy, or console.enabled: false"
MAX_READ = 4097  # octets: one more than a token may have


def keep(folder: Path) -> Path:
    """Return the token's file; create the folder and the token if they do not exist.

    Raises SettingsError, also for a file that another user could have written or read.
    """
    file = folder.absolute() / FILE
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not os.path.lexists(file):
            _make(file)
    except OSError as error:
        text = (
            f"console: cannot store the token in {file}: {error.strerror}; set store.data_dir to a writable folder, "
            f"{ALTERNATIVES}"
        )
        raise SettingsError([text]) from None
    read(file)
    return file


def read(file: Path) -> bytes:
    """Return the token. Raises SettingsError unless it is a regular file of a trusted owner, with no access for others.

    The data folder may be in a place where others can write, such as /tmp.
    """
    try:
        # do not follow a link or block on a named pipe
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        found = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
        raise _unsafe(file, str(found)) from None
    with open(descriptor, "rb") as opened:
        if problem := _problem(os.fstat(descriptor)):
            raise _unsafe(file, problem)
        return opened.read(MAX_READ).strip()


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
        f"console: the token in {file} is rejected: {problem}; delete the file to get a new token, set "
        f"store.data_dir to a folder of your own, {ALTERNATIVES}"
    )
    return SettingsError([text])


def _make(file: Path) -> None:
    """Write a new token with mode 0600. If several consoles do this at once, the first one wins."""
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
    """Raise SettingsError if the file system ignored the mode of a new file."""
    if mode & OTHERS:
        text = (
            f"console: cannot store the token in {file}: the file system does not keep permissions (a new file of "
            f"mode 0600 has {stat.S_IMODE(mode):04o}); set store.data_dir to a folder on another one, {ALTERNATIVES}"
        )
        raise SettingsError([text])


def link(url: str, file: Path) -> str:
    """Return the page's address with the token in the fragment, which browsers do not send to servers."""
    return f"{url}#token={read(file).decode()}"


def shown(url: str, file: Path, *, at_terminal: bool) -> str:
    """Return the text to print: the link at a terminal; elsewhere, as in a log, only the token's file."""
    return link(url, file) if at_terminal else f"{url} (token in {file})"
