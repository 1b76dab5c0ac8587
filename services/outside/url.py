"""Parse URLs strictly, and mask possible secrets in them.

A password that is not percent-encoded can look like the host. So an ambiguous URL is rejected, and no error repeats any
part of it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from urllib.parse import unquote

MASK = "***"
MAX_PORT = 65_535
ENCODE = "percent-encode special characters in the user and password: % as %25, / as %2F, ? as %3F, # as %23, @ as %40"

QUOTES = ("'", '"')
_LOGIN_WORD = re.compile(r"(['\"(]?)\S+@")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_PARTS = re.compile(r"([^/?]*)([^?]*)(?:\?(.*))?", re.DOTALL)
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+(?:%[^\[\]]+)?\]|[^\s\[\]@:%\\]+)(?::([0-9]{1,5}))?")


class BadUrl(ValueError):
    """An unusable URL. The message says what to write, and repeats no part of the URL."""


@dataclass(frozen=True, slots=True)
class Url:
    """The parts of a URL. User, password and options are decoded."""

    scheme: str  # in lower case
    hosts: tuple[tuple[str, int | None], ...]  # an IPv6 address without its brackets
    path: str = ""  # not decoded, like the query
    query: str = field(default="", repr=False)
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)  # None without a ':'

    def options(self, allowed: Collection[str], hints: dict[str, str] | None = None) -> dict[str, str]:
        """Return the options of the query. Raises BadUrl for an option that is unknown, repeated or empty.

        `hints` are errors for unknown names that are likely.
        """
        found: dict[str, str] = {}
        for pair in self.query.split("&") if self.query else ():
            name, _, value = pair.partition("=")
            if name not in allowed:
                hint = (hints or {}).get(name)
                names = ", ".join(allowed) or "none"
                raise BadUrl(hint or f"an option after '?' is unknown; allowed here: {names}")
            if not value or name in found:
                raise BadUrl(f"the option {name} is " + ("given twice" if name in found else "empty"))
            if "+" in value:
                raise BadUrl(f"the value of {name} has a '+': write %2B for a plus sign, %20 for a space")
            found[name] = decoded(value)
        return found


def parse_url(text: str, example: str = "redis://host:6379") -> Url:
    """Split a URL. Raises BadUrl, and nothing else. `example` is for the error about a missing scheme."""
    scheme = _SCHEME.match(text)
    if scheme is None:
        raise BadUrl(f"a URL must begin with a scheme, as in {example}")
    if _CONTROL.search(text):
        raise BadUrl("the URL contains a line end or another control character")
    if "#" in text:
        raise BadUrl(f"the URL contains a '#': {ENCODE}")
    parts = _PARTS.fullmatch(text, scheme.end())
    assert parts is not None  # the pattern takes any text
    authority, path, query = parts[1], parts[2], parts[3] or ""
    login, at, places = authority.rpartition("@")
    if "@" in login + path + query:
        raise BadUrl(f"it is unclear where the user and password end: {ENCODE}")
    user, colon, password = login.partition(":")
    return Url(
        scheme[1].lower(),
        tuple(_host(place) for place in places.split(",")) if places else (),
        path,
        query,
        decoded(user) if at else None,
        decoded(password) if colon else None,
    )


def mask_url(text: str) -> str:
    """Return a URL, or a text with URLs, with `***` for each login and for everything after a `?` or `#`.

    Everything after the scheme is masked if the end of the login is ambiguous.
    """
    scheme = _SCHEME.search(text)
    if scheme is None:
        return text
    rest = text[scheme.end() :]
    login, at, behind = rest.rpartition("@")
    if at and not (scheme.start() == 0 and _is_url(text)):
        return f"{text[: scheme.end()]}{MASK}{_quote(rest)}"
    place, mark, query = re.fullmatch(r"([^?#]*)([?#]?)(.*)", behind, re.DOTALL).groups()  # type: ignore[union-attr]
    shown = f"{mark}{MASK}{_quote(query)}" if mark else ""
    return f"{text[: scheme.end()]}{MASK + at if login else ''}{place}{shown}"


def mask_input(text: str) -> str:
    """Return a rejected input, perhaps in quotes, with `***` for a possible login: `user:password@host:port`."""
    before, at, behind = text.rpartition("@")
    if not at or _SCHEME.search(text):
        return mask_url(text)
    return f"{before[0] if before.startswith(QUOTES) else ''}{MASK}@{behind}"


def mask_words(text: str) -> str:
    """Return a message with `***` for the login in each URL or address of it."""
    return mask_url(text) if _SCHEME.search(text) else _LOGIN_WORD.sub(rf"\1{MASK}@", text)


def _is_url(text: str) -> bool:
    try:
        parse_url(text)
    except BadUrl:
        return False
    return True


def _quote(text: str) -> str:
    """Return the quotation mark at the end of a text that quotes a URL."""
    return text[-1] if text.endswith(QUOTES) else ""


def decoded(text: str) -> str:
    """Return the text without percent-encoding. Raises BadUrl."""
    if _BAD_ESCAPE.search(text):
        raise BadUrl(f"the URL contains a '%' that does not begin an escape: {ENCODE}")
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise BadUrl("an escape such as %FF is not UTF-8") from None


def _host(place: str) -> tuple[str, int | None]:
    found = _HOST.fullmatch(place)
    port = int(found[2]) if found is not None and found[2] else None
    if found is None or (port is not None and not 0 < port <= MAX_PORT):
        raise BadUrl(
            "each host must be host or host:port, its port from 1 to 65535, an IPv6 address in brackets; "
            f"if the URL has a user or password: {ENCODE}"
        )
    return found[1].strip("[]"), port
