"""What a browser may be made to ask by a page of somebody else: nothing of the API where it says that it does so,
nothing that changes anything in any case, and nothing at all by a name that leads here only since a minute ago (DNS
rebinding)."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from services.console.problems import Problem
from services.console.settings import ConsoleSettings

LOCAL_NAMES = ("localhost", "ip6-localhost")
PROXIED = ("forwarded", "via", "x-real-ip", "x-forwarded-")  # so begin headers that only a proxy writes
BEHIND_PROXY = (
    "a reverse proxy passes this on ({name}), and this console lets in whoever reaches it, as it has neither tokens "
    "nor a trusted proxy: set console.tokens, or console.proxy with its networks and with what groups may do, and "
    "begin it anew"
)
SAME = "same-origin"  # of Sec-Fetch-Site, which no page can write
NOBODY = "none"  # no page asks: somebody typed it in, or this is no browser


class Guard:
    def __init__(self, settings: ConsoleSettings) -> None:
        self._is_open = settings.is_open
        self._origins = frozenset(origin.rstrip("/").lower() for origin in settings.origins)

    def check(self, headers: Mapping[str, str], *, is_change: bool) -> None:
        """Raises Problem 421 for a host that is none of ours, or a proxy that opens to others what is open to this
        machine; 403 for a page that is none."""
        host = headers.get("Host", "")
        if self._is_open and (name := _proxy_header(headers)):
            raise Problem(421, "behind_proxy", BEHIND_PROXY.format(name=name))
        if self._is_open and not is_local(host):
            text = "without tokens the console answers only under the name localhost or a loopback address"
            raise Problem(421, "foreign_host", text)
        origin, site = headers.get("Origin"), headers.get("Sec-Fetch-Site", NOBODY)
        if site == SAME:
            return  # a browser knows better than Host, which a proxy may have written anew
        if origin is not None and (
            origin.lower() in self._origins or (site == NOBODY and _leads_to(host, origin))
        ):
            return  # where the browser says no site, the scheme is not compared: a proxy's TLS hides it from us
        if is_change and origin is not None:
            raise Problem(403, "foreign_origin", "a page of another origin may change nothing here")
        if site != NOBODY:
            raise Problem(403, "foreign_origin", "a page of another site may ask for nothing here")


def _leads_to(host: str, origin: str) -> bool:
    try:
        return urlsplit(origin).netloc.lower() == host.lower() != ""
    except ValueError:
        return False


def _proxy_header(headers: Mapping[str, str]) -> str | None:
    return next((name for name in headers if name.lower().startswith(PROXIED)), None)


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
