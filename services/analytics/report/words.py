"""Format texts of clients, and numbers on an axis."""

from __future__ import annotations

import re

INVISIBLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff]"
)


def count(value: float) -> str:
    """Return a short number for an axis, such as 1.2 M."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:g} {name}"
    return f"{value:g}"


def visible(text: str) -> str:
    r"""Return one line in which invisible and direction-changing characters are written as \xNN or \uNNNN."""
    return INVISIBLE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
