"""Reject requests from pages of other origins, and prevent DNS rebinding."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from services.console.contract.problems import Problem
from services.console.settings import ConsoleSettings

LOCAL_NAMES = ("localhost", "ip6-localhost")
SAME = "same-origin"  # of Sec-Fetch-Site, which pages cannot set
DIRECT = "none"  # not from a page: typed address, or not a browser


class OriginCheck:
    """A check of the headers Host, Origin and Sec-Fetch-Site."""

    def __init__(self, settings: ConsoleSettings) -> None:
        self._is_local = settings.is_local
        self._origins = frozenset(origin.rstrip("/").lower() for origin in settings.origins)

    def check(self, headers: Mapping[str, str]) -> None:
        """Raise Problem 403 for another origin; without tokens or a proxy, 421 for a host name of another machine."""
        host = headers.get("Host", "")
        if self._is_local and not is_local(host):
            text = "without console.tokens or console.proxy, use the name localhost or a loopback address"
            raise Problem(421, "foreign_host", text)
        origin, site = headers.get("Origin"), headers.get("Sec-Fetch-Site", DIRECT)
        if not self._is_own(origin, site, host):
            raise Problem(
                403,
                "foreign_origin",
                "requests from pages of other origins are rejected: see console.origins",
            )

    def _is_own(self, origin: str | None, site: str, host: str) -> bool:
        if origin is not None and origin.lower() in self._origins:
            return True
        if site == SAME and not self._is_local:
            return True  # more reliable than Host, which a proxy may have changed
        # without Sec-Fetch-Site, compare hosts only: TLS of a proxy hides the scheme
        return site in (SAME, DIRECT) and (origin is None or _is_origin_of(host, origin))


def _is_origin_of(host: str, origin: str) -> bool:
    try:
        return urlsplit(origin).netloc.lower() == host.lower() != ""
    except ValueError:
        return False


def is_local(host: str) -> bool:
    """Return whether a Host header, with or without a port, names this machine."""
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
