"""Identify callers by a token, or by what a trusted proxy says."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from multidict import MultiMapping

from services.console.access.tokens import LONGEST, Tokens
from services.console.contract.problems import Problem, bad_request
from services.console.contract.roles import RANKS, Role
from services.console.settings import ConsoleSettings, Proxy, Token
from services.kit.net import plain_address

LOCAL = "local"  # the name of who has the console's own token
BEARER = "bearer "
LONGEST_HEADER = len(BEARER) + LONGEST  # characters
LONGEST_NAME = 255  # characters of a user's name; the rest is cut


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, where he is (`Identities.address`), and how that is known: by `token` or `proxy`.

    role: None for somebody of whom nothing is known, or whose groups may nothing.
    """

    who: str
    role: Role | None
    auth: str
    address: str


class Identities:
    """Raises SettingsError for tokens that cannot be used."""

    def __init__(self, settings: ConsoleSettings, local: Path | None = None) -> None:
        """local: file of the token that counts where nothing is set up (local_token)."""
        own = None if local is None else Token(name=LOCAL, role=Role.ADMIN, file=local)
        self._proxy = settings.proxy
        self._tokens = Tokens(settings.tokens, own)

    def of(self, headers: MultiMapping[str], address: str) -> Caller:
        """address: of the connection. Raises Problem 400, 401."""
        client = self.address(headers, address)
        if self._proxy is not None and _is_of(self._proxy, address):
            found = _proxied(self._proxy, headers, client)
            if found is not None:
                return found
        if token := self._token(headers):
            return Caller(token.name, token.role, "token", client)
        text = "a token is needed: Authorization: Bearer, with one of console.tokens, or the one in the data folder"
        raise Problem(401, "unauthorized", text, headers={"WWW-Authenticate": 'Bearer realm="penstock"'})

    def address(self, headers: MultiMapping[str], address: str) -> str:
        """Where he comes from: as the trusted proxy says, where the connection is its; else that of the connection."""
        proxy = self._proxy
        if proxy is None or proxy.address_header is None or not _is_of(proxy, address):
            return address
        return _last_hop(headers.getall(proxy.address_header, [])) or address

    def _token(self, headers: MultiMapping[str]) -> Token | None:
        said = headers.get("Authorization", "")
        if not said.lower().startswith(BEARER) or len(said) > LONGEST_HEADER:
            return None
        token = said[len(BEARER) :].strip(" \t")  # what a header may have around it, and nothing else
        return self._tokens.of(token.encode("utf-8", "surrogateescape")) if token else None


def _is_of(proxy: Proxy, address: str) -> bool:
    """Whether a connection from there is the proxy's."""
    try:
        place = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(place in network for network in proxy.networks)


def _last_hop(said: list[str]) -> str:
    """The last address, which the proxy itself has written: anybody may have sent what stands before it. '': none."""
    text = said[-1].rpartition(",")[2].strip() if said else ""
    if text.startswith("["):  # [::1]:80
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:  # 10.0.0.7:80
        text = text.partition(":")[0]
    try:
        return str(ipaddress.ip_address(plain_address(text)))
    except ValueError:
        return ""


def _proxied(proxy: Proxy, headers: MultiMapping[str], address: str) -> Caller | None:
    """None: the proxy does not say who it is. Raises Problem 400, 401."""
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
