"""Identify callers by a token or by the headers of a trusted proxy."""

from __future__ import annotations

import ipaddress
from pathlib import Path

from multidict import MultiMapping

from services.console.access.authorization import Caller
from services.console.access.tokens import LONGEST, Tokens
from services.console.contract.problems import Problem, bad_request
from services.console.contract.roles import RANKS, Role
from services.console.settings import ConsoleSettings, Proxy, Token
from services.kit.net import plain_address

LOCAL = "local"  # caller with the console's own token
BEARER = "bearer "
LONGEST_HEADER = len(BEARER) + LONGEST  # characters
LONGEST_NAME = 255  # characters of a user's name; the rest is cut


class Identities:
    """The configured tokens and proxy."""

    def __init__(self, settings: ConsoleSettings, local: Path | None = None) -> None:
        """Load tokens. local: file of the local token, if used. Raises SettingsError."""
        own = None if local is None else Token(name=LOCAL, role=Role.ADMIN, file=local)
        self._proxy = settings.proxy
        self._tokens = Tokens(settings.tokens, own)

    def identify(self, headers: MultiMapping[str], address: str) -> Caller:
        """Return the caller. address: of the connection. Raises Problem 400, 401."""
        client = self.address(headers, address)
        if self._proxy is not None and _is_proxy(self._proxy, address):
            found = _proxied(self._proxy, headers, client)
            if found is not None:
                return found
        if token := self._token(headers):
            return Caller(token.name, token.role, "token", client)
        text = "authentication required: send Authorization: Bearer with a token of console.tokens or the data folder"
        raise Problem(401, "unauthorized", text, headers={"WWW-Authenticate": 'Bearer realm="penstock"'})

    def address(self, headers: MultiMapping[str], address: str) -> str:
        """Return the client's address: from the header of a trusted proxy, else that of the connection."""
        proxy = self._proxy
        if proxy is None or proxy.address_header is None or not _is_proxy(proxy, address):
            return address
        return _last_hop(headers.getall(proxy.address_header, [])) or address

    def _token(self, headers: MultiMapping[str]) -> Token | None:
        header = headers.get("Authorization", "")
        if not header.lower().startswith(BEARER) or len(header) > LONGEST_HEADER:
            return None
        token = header[len(BEARER) :].strip(" \t")  # optional white space of HTTP, and nothing else
        return self._tokens.find(token.encode("utf-8", "surrogateescape")) if token else None


def _is_proxy(proxy: Proxy, address: str) -> bool:
    """Return whether the address is in one of the proxy's networks."""
    try:
        place = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(place in network for network in proxy.networks)


def _last_hop(values: list[str]) -> str:
    """Return the last address, which the proxy has written; those before it are from clients. '': none."""
    text = values[-1].rpartition(",")[2].strip() if values else ""
    if text.startswith("["):  # [::1]:80
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:  # 10.0.0.7:80
        text = text.partition(":")[0]
    try:
        return str(ipaddress.ip_address(plain_address(text)))
    except ValueError:
        return ""


def _proxied(proxy: Proxy, headers: MultiMapping[str], address: str) -> Caller | None:
    """Return the caller named by the proxy, or None. Raises Problem 400, 401."""
    user = _single(headers, proxy.user_header)
    if not user:
        return None
    if not user.isprintable():  # it appears in logs and as the origin of messages
        raise bad_request(f"{proxy.user_header} must be a name of printable UTF-8")
    groups = (group.strip() for group in _single(headers, proxy.role_header).split(","))
    roles = [proxy.roles[group] for group in groups if group in proxy.roles]
    role = max(roles, key=lambda role: RANKS[role], default=None)
    return Caller(user[:LONGEST_NAME], role, "proxy", address)


def _single(headers: MultiMapping[str], name: str) -> str:
    """Return the value of a header, or ''. Raises Problem for duplicates: one may come from the proxy's client."""
    found = headers.getall(name, [])
    if len(found) > 1:
        text = f"header {name} was sent {len(found)} times: the proxy has to remove those of its clients"
        raise Problem(401, "unauthorized", text)
    return found[0].strip() if found else ""
