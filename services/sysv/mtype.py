"""Map the type of a System V message to the attribute `mtype` and back (docs/sysv.md 2.5, 3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MTYPE = "mtype"  # written by `out`, read by `in`
PRIORITY = "priority"  # read by `in` without `mtype`
MAX_MTYPE = (1 << 63) - 1  # on any machine
MAX_DIGITS = len(str(MAX_MTYPE))


def mtype_of(attributes: Mapping[str, Any]) -> int:
    """Return the message's `mtype` or else its `priority`, if valid as a type; else 1."""
    for name in (MTYPE, PRIORITY):
        if found := _type(attributes.get(name)):
            return found
    return 1


def _type(value: object) -> int:
    """Return the type, or 0 if the value is not valid as one."""
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        digits = value.lstrip("0")
        value = int(digits or 0) if len(digits) <= MAX_DIGITS else 0  # Python parses at most 4,300
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_MTYPE:
        return value
    return 0
