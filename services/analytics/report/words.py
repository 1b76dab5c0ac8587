"""Format texts of clients, numbers on an axis, and how two counts differ."""

from __future__ import annotations

import re

from services.kit.formatting import format_number, format_share

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


def difference(published: int, sampled_in: int, delivered: int, sampled_out: int) -> str:
    """Return a sentence on how the edges' samples differ from the queues' counters; '' if they agree."""
    both = ((published, sampled_in, "messages published"), (delivered, sampled_out, "messages delivered"))
    less = [f"{format_share(own / all_)} of the {what}" for all_, own, what in both if own < all_]
    more = [f"{format_number(own - all_)} more {what}" for all_, own, what in both if own > all_]
    found = ""
    if less:
        found = (
            f"Edges' samples cover {' and '.join(less)}: the rest went through no edge, as with `penstock put` and "
            "redrives, or through a process that was killed before its sample. "
        )
    if more:
        subject = "They" if less else "Edges' samples"
        found += (
            f"{subject} have {' and '.join(more)} than the queues' counters, sampled earlier or not at all."
        )
    return found.strip()
