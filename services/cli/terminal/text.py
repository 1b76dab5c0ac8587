"""Format untrusted text and numbers for one line on a terminal."""

from __future__ import annotations

import re

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
PREVIEW = 60  # characters of a body in a table
PREVIEW_OCTETS = 4 * PREVIEW + 1  # enough to show them, and to know whether there are more
AGES = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"))


def printable(text: str) -> str:
    r"""Return the text with control characters escaped as \xNN or \uNNNN."""
    return CONTROL.sub(_escape, text)


def legible(body: bytes) -> bytes:
    """Escape a whole body for a terminal; line feeds and tabs stay."""
    lines = body.decode("utf-8", "surrogateescape").split("\n")
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in lines).encode()


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was not UTF-8 (surrogateescape)
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def preview(body: bytes, width: int = PREVIEW) -> str:
    """Return the start of a body as text, cut with an ellipsis."""
    text = printable(body[: 4 * width].decode("utf-8", "surrogateescape"))
    return text if len(text) <= width and len(body) <= 4 * width else text[: width - 1] + "…"


def age(ms: int) -> str:
    """Format an age in its largest whole unit: 90_000 -> '1m'."""
    for unit, name in AGES:
        if ms >= unit:
            return f"{ms // unit}{name}"
    return "0s"


def count(number: int, noun: str) -> str:
    """Format a count with its noun: 3, 'message' -> '3 messages'."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
