"""Represent octets that are not UTF-8 as text, reversibly, so that patterns for characters match the valid parts.

An octet outside of any character becomes one of the last 128 code points. If a value really contains one of these, it
is represented by its four octets, so that different values have different texts.
"""

from __future__ import annotations

import re

REAL = re.compile("[\U0010ff80-\U0010ffff]")
ESCAPED = 0xDC00  # plus an octet: Python's `surrogateescape`, which RE2 does not accept
# prefixes of the UTF-8 of escaped octets, and of their replacements; the last octet is the same
BEGINNINGS = ((b"\xed\xb2", b"\xf4\x8f\xbe"), (b"\xed\xb3", b"\xf4\x8f\xbf"))


def as_text(value: bytes) -> str:
    """Return the value as text; valid UTF-8 as its characters."""
    told = REAL.sub(_apart, value.decode(errors="surrogateescape")).encode(errors="surrogatepass")
    for escaped, stray in BEGINNINGS:
        told = told.replace(escaped, stray)
    return told.decode()


def as_octets(text: str) -> bytes:
    """Return the octets of a text made by `as_text`."""
    told = text.encode()
    for escaped, stray in BEGINNINGS:
        told = told.replace(stray, escaped)
    return told.decode(errors="surrogatepass").encode(errors="surrogateescape")


def _apart(found: re.Match[str]) -> str:
    return "".join(chr(ESCAPED + octet) for octet in found[0].encode())
