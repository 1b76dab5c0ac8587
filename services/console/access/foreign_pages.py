"""Reject what a page of another origin makes a browser ask, and names that lead here by DNS rebinding."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from services.console.contract.problems import Problem
from services.console.settings import ConsoleSettings

LOCAL_NAMES = ("localhost", "ip6-localhost")
SAME = "same-origin"  # of Sec-Fetch-Site, which no page can write
DIRECT = "none"  # no page asks: the address was typed in, or this is no browser


class Guard:
    def __init__(self, settings: ConsoleSettings) -> None:
        self._is_local = settings.is_local
        self._origins = frozenset(origin.rstrip("/").lower() for origin in settings.origins)

    def check(self, headers: Mapping[str, str]) -> None:
        """Raise Problem 421 for a host that is not this machine's where nothing is set up; 403 for another origin."""
        host = headers.get("Host", "")
        if self._is_local and not is_local(host):
            text = "without tokens or a proxy the console answers only under the name localhost or a loopback address"
            raise Problem(421, "foreign_host", text)
        origin, site = headers.get("Origin"), headers.get("Sec-Fetch-Site", DIRECT)
        if not self._is_own(origin, site, host):
            raise Problem(403, "foreign_origin", "a page of another origin may ask for nothing here")

    def _is_own(self, origin: str | None, site: str, host: str) -> bool:
        if origin is not None and origin.lower() in self._origins:
            return True
        if site == SAME and not self._is_local:
            return True  # a browser knows better than Host, which a proxy may have written anew
        # where the browser says no site, the scheme is not compared: a proxy's TLS hides it from us
        return site in (SAME, DIRECT) and (origin is None or _leads_to(host, origin))


def _leads_to(host: str, origin: str) -> bool:
    try:
        return urlsplit(origin).netloc.lower() == host.lower() != ""
    except ValueError:
        return False


def is_local(host: str) -> bool:
    """host: as the header has it, with or without a port."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name.rstrip(".") in LOCAL_NAMES or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
