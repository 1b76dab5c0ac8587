"""Who asks: by a token, by what a trusted proxy says, or, if nothing was set up, whoever is on this machine."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import logging
import os
from dataclasses import dataclass
from pathlib import Path

from multidict import MultiMapping

from services.console.problems import Problem, bad_request
from services.console.roles import RANKS, Role
from services.console.settings import ConsoleSettings, Proxy, Token
from services.kit.layers import SettingsError

log = logging.getLogger(__name__)

BEARER = "bearer "
LONGEST_TOKEN = 4096  # characters
LONGEST_NAME = 255  # characters of a user's name; the rest is cut


@dataclass(frozen=True, slots=True)
class Caller:
    """auth: off, token or proxy. role: None for somebody of whom nothing is known, or whose groups may nothing."""

    who: str
    role: Role | None
    auth: str
    address: str


class Identities:
    """Raises SettingsError for a token's file that cannot be used."""

    def __init__(self, settings: ConsoleSettings) -> None:
        self._is_open = settings.is_open
        self._proxy = settings.proxy
        self._tokens = [_Known(token) for token in settings.tokens]

    def of(self, headers: MultiMapping[str], address: str) -> Caller:
        """address: of the connection. Raises Problem 400, 401."""
        if self._is_open:
            return Caller("local", Role.ADMIN, "off", address)
        if self._proxy is not None and (found := _proxied(self._proxy, headers, address)):
            return found
        if token := self._token(headers):
            return Caller(token.name, token.role, "token", address)
        text = "say who you are: Authorization: Bearer with a token of console.tokens"
        raise Problem(401, "unauthorized", text, headers={"WWW-Authenticate": 'Bearer realm="penstock"'})

    def _token(self, headers: MultiMapping[str]) -> Token | None:
        """All are compared, each in the same time: how long it takes tells nothing."""
        said = headers.get("Authorization", "")
        if not said.lower().startswith(BEARER) or len(said) > LONGEST_TOKEN:
            return None
        token = said[len(BEARER) :].strip(" \t")  # what a header may have around it, and nothing else
        if not token:
            return None
        given = digest(token.encode("utf-8", "surrogateescape"))
        found = None
        for known in self._tokens:
            if hmac.compare_digest(known.digest(), given):
                found = known.token
        return found


def digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


class _Known:
    """A token's digest; that of a file follows it."""

    def __init__(self, token: Token) -> None:
        self.token = token
        self._file = token.file
        self._stamp: tuple[int, ...] = ()
        self._digest = bytes.fromhex(token.sha256) if token.sha256 is not None else b""
        if self._file is not None:
            self._stamp = _stamp(self._file)
            self._digest = _read(self._file)

    def digest(self) -> bytes:
        """A file that is gone, or not whole yet, changes nothing."""
        if self._file is not None and (stamp := _stamp(self._file)) != self._stamp:
            self._stamp = stamp
            try:
                self._digest = _read(self._file)
            except SettingsError as error:
                log.error("%s", error, extra={"action": "token_reload_failed", "token": self.token.name})
        return self._digest


def _stamp(file: Path) -> tuple[int, ...]:
    try:
        found = os.stat(file)
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_ino, found.st_size


def _read(file: Path) -> bytes:
    """The digest of what stands there, without the line feed behind it. Raises SettingsError."""
    try:
        token = file.read_bytes().strip()
    except OSError as error:
        raise SettingsError([f"console.tokens: {file}: {error.strerror}"]) from None
    if not token or len(token) > LONGEST_TOKEN:
        raise SettingsError([f"console.tokens: {file}: must hold a token of 1 to {LONGEST_TOKEN} octets"])
    return digest(token)


def _proxied(proxy: Proxy, headers: MultiMapping[str], address: str) -> Caller | None:
    """None: it did not come through the proxy, or the proxy does not say who it is. Raises Problem 400, 401."""
    try:
        place = ipaddress.ip_address(address)
    except ValueError:
        return None
    if not any(place in network for network in proxy.networks):
        return None
    user = _said_once(headers, proxy.user_header)
    if not user:
        return None
    if not user.isprintable():  # nor is half a character: it would stand in logs and beside messages
        raise bad_request(f"{proxy.user_header} must be a name of printable UTF-8")
    groups = (group.strip() for group in _said_once(headers, proxy.role_header).split(","))
    roles = [proxy.roles[group] for group in groups if group in proxy.roles]
    role = max(roles, key=lambda role: RANKS[role], default=None)
    return Caller(user[:LONGEST_NAME], role, "proxy", address)


def _said_once(headers: MultiMapping[str], name: str) -> str:
    """Twice is by the proxy and by its client, and nobody knows which is whose. Raises Problem."""
    found = headers.getall(name, [])
    if len(found) > 1:
        text = f"{name} was said {len(found)} times: the proxy has to take away what its clients send"
        raise Problem(401, "unauthorized", text)
    return found[0].strip() if found else ""
