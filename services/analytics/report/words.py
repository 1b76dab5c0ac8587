"""Strangers' texts, and numbers on an axis, as people read them."""

from __future__ import annotations

import re

INVISIBLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff]"
)


def count(value: float) -> str:
    """Short, for an axis: 1.2 M."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:g} {name}"
    return f"{value:g}"


def visible(text: str) -> str:
    """One line in which nothing hides and nothing turns others round: such characters stand as \\xNN or \\uNNNN."""
    return INVISIBLE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
