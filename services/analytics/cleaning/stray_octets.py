"""Represent octets that are not UTF-8 as text, reversibly, so that patterns for characters match the valid parts.

An octet outside of any character becomes one of the last 128 code points. If a value really contains one of these, it
is represented by its four octets, so that different values have different texts.
"""

from __future__ import annotations

LAST = 0x10FF00  # plus an octet: the code point that represents it
ESCAPED = 0xDC00  # plus an octet: Python's `surrogateescape`, which RE2 does not accept
BACK = {LAST + octet: ESCAPED + octet for octet in range(0x80, 0x100)}
REAL = {code: "".join(chr(LAST + octet) for octet in chr(code).encode()) for code in BACK}
THERE = {escaped: code for code, escaped in BACK.items()} | REAL


def as_text(value: bytes) -> str:
    """Return the value as text; valid UTF-8 as its characters."""
    return value.decode(errors="surrogateescape").translate(THERE)


def as_octets(text: str) -> bytes:
    """Return the octets of a text made by `as_text`."""
    return text.translate(BACK).encode(errors="surrogateescape")
