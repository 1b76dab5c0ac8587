"""Find the configured token that a caller sent. Files of tokens are read again when they change."""

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

SHORTEST = 16  # octets of a token in a file; the length behind a digest is unknown
LONGEST = 4096


class Tokens:
    """The configured tokens."""

    def __init__(self, tokens: Sequence[Token], own: Token | None = None) -> None:
        """Load tokens. own: the local token, whose file must be safe.

        Raises SettingsError for an unusable file, and for two entries with the same token.
        """
        self._known = [_Known(token, _read) for token in tokens]
        if own is not None:
            self._known.append(_Known(own, local_token.read))
        if faults := list(self._duplicates()):
            raise SettingsError(faults)

    def find(self, sent: bytes) -> Token | None:
        """Return the entry of a token, comparing all in constant time.

        Return None if two entries have the same token, as files may change while the console runs.
        """
        changed = [known for known in self._known if known.refresh()]
        if changed:
            for fault in self._duplicates():
                log.error("%s", fault, extra={"action": "token_reload_failed"})
        given = digest(sent)
        found = [known.token for known in self._known if hmac.compare_digest(known.digest, given)]
        return found[0] if len(found) == 1 else None

    def _duplicates(self) -> Iterator[str]:
        """Yield a message for each token that several entries have."""
        names: dict[bytes, list[str]] = {}
        for known in self._known:
            names.setdefault(known.digest, []).append(known.token.name)
        for same in names.values():
            if len(same) > 1:
                entries = ", ".join(same)
                yield f"console.tokens: {entries} have the same token: give each its own"


def digest(token: bytes) -> bytes:
    """Return the SHA-256 digest."""
    return hashlib.sha256(token).digest()


class _Known:
    """A configured token and its digest, which follows changes of its file."""

    def __init__(self, token: Token, read: Callable[[Path], bytes]) -> None:
        """Read the token. read: returns the content of its file. Raises SettingsError."""
        self.token = token
        self._read = read
        self.digest = bytes.fromhex(token.sha256 or "")
        self._stamp: tuple[int, ...] = ()
        if token.file is not None:
            self._stamp = _stamp(token.file)
            self.digest = self._digest(token.file)

    def refresh(self) -> bool:
        """Read the file if it has changed, and return whether it did. A missing or incomplete file changes nothing."""
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
    """Return the content without white space around it. Raises SettingsError."""
    try:
        return file.read_bytes().strip()
    except OSError as error:
        raise SettingsError([f"console.tokens: {file}: {error.strerror}"]) from None
