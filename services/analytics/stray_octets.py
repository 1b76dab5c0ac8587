"""Octets that are no UTF-8 as a text all the same, and back: patterns for characters then match in what is some.

An octet that is of no character stands as one of the last 128 that there are. Those of them that a value really has
stand as four such octets each, so no two values have the same text.
"""

from __future__ import annotations

import re

REAL = re.compile("[\U0010ff80-\U0010ffff]")
ESCAPED = 0xDC00  # and an octet: how Python's `surrogateescape` has it, which is no character for RE2
# how the UTF-8 of all of those begins, and that of what stands for them here: the last octet is the same
BEGINNINGS = ((b"\xed\xb2", b"\xf4\x8f\xbe"), (b"\xed\xb3", b"\xf4\x8f\xbf"))


def as_text(value: bytes) -> str:
    """All that is UTF-8 as its characters."""
    told = REAL.sub(_apart, value.decode(errors="surrogateescape")).encode(errors="surrogatepass")
    for escaped, stray in BEGINNINGS:
        told = told.replace(escaped, stray)
    return told.decode()


def as_octets(text: str) -> bytes:
    """What it was made of."""
    told = text.encode()
    for escaped, stray in BEGINNINGS:
        told = told.replace(stray, escaped)
    return told.decode(errors="surrogatepass").encode(errors="surrogateescape")


def _apart(found: re.Match[str]) -> str:
    return "".join(chr(ESCAPED + octet) for octet in found[0].encode())
