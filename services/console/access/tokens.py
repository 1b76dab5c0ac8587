"""Who comes with which token. Files of tokens are read again when they change, and held to the rules of digests."""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from services.console.access import local_token
from services.console.settings import Token
from services.kit.config import SettingsError

log = logging.getLogger(__name__)

SHORTEST = (
    16  # octets of one in a file: of a digest nobody knows. What is known to all (settings.py) is shorter
)
LONGEST = 4096


class Tokens:
    """Raises SettingsError for a file that cannot be used, and for two of one token."""

    def __init__(self, tokens: Sequence[Token], own: Token | None = None) -> None:
        """own: the token of local_token, whose file must be safe."""
        self._known = [_Known(token, _read) for token in tokens]
        if own is not None:
            self._known.append(_Known(own, local_token.read))
        if faults := list(self._alike()):
            raise SettingsError(faults)

    def of(self, said: bytes) -> Token | None:
        """Whose it is. All are compared, each in the same time: how long it takes tells nothing.

        Nobody's where two have the same one: files may come to that while we run.
        """
        changed = [known for known in self._known if known.refresh()]
        if changed:
            for fault in self._alike():
                log.error("%s", fault, extra={"action": "token_reload_failed"})
        given = digest(said)
        found = [known.token for known in self._known if hmac.compare_digest(known.digest, given)]
        return found[0] if len(found) == 1 else None

    def _alike(self) -> Iterator[str]:
        """What is to be said of those that nobody could tell apart."""
        names: dict[bytes, list[str]] = {}
        for known in self._known:
            names.setdefault(known.digest, []).append(known.token.name)
        for same in names.values():
            if len(same) > 1:
                who = ", ".join(same)
                yield f"console.tokens: {who} have the same token, so nobody could tell who it was: give each his own"


def digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


class _Known:
    """A token's digest; that of a file follows it."""

    def __init__(self, token: Token, read: Callable[[Path], bytes]) -> None:
        """Raises SettingsError. read: returns what stands in the file."""
        self.token = token
        self._read = read
        self.digest = bytes.fromhex(token.sha256 or "")
        self._stamp: tuple[int, ...] = ()
        if token.file is not None:
            self._stamp = _stamp(token.file)
            self.digest = self._digest(token.file)

    def refresh(self) -> bool:
        """Whether it changed. A file that is gone, or not whole yet, changes nothing."""
        file = self.token.file
        if file is None or (stamp := _stamp(file)) == self._stamp:
            return False
        self._stamp = stamp
        try:
            self.digest = self._digest(file)
        except SettingsError as error:
            log.error("%s", error, extra={"action": "token_reload_failed", "token": self.token.name})
            return False
        return True

    def _digest(self, file: Path) -> bytes:
        """Raises SettingsError."""
        token = self._read(file)
        if not SHORTEST <= len(token) <= LONGEST:
            text = f"must hold a token of {SHORTEST} to {LONGEST} octets; `openssl rand -hex 32` makes one"
            raise SettingsError([f"console.tokens: {file}: {text}"])
        return digest(token)


def _stamp(file: Path) -> tuple[int, ...]:
    try:
        found = os.stat(file)
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_ino, found.st_size


def _read(file: Path) -> bytes:
    """What stands there, without the line feed behind it. Raises SettingsError."""
    try:
        return file.read_bytes().strip()
    except OSError as error:
        raise SettingsError([f"console.tokens: {file}: {error.strerror}"]) from None
