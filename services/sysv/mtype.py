"""The type of a System V message, which is the attribute `mtype` in Penstock, both ways (docs/sysv.md 2.5, 3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MTYPE = "mtype"  # written by `out`, read by `in`
PRIORITY = "priority"  # read by `in` where there is no `mtype`
LARGEST = (1 << 63) - 1  # of any machine
LARGEST_DIGITS = len(str(LARGEST))


def mtype_of(attributes: Mapping[str, Any]) -> int:
    """Return the message's `mtype`, else its `priority`, whichever can be a type; else 1."""
    for name in (MTYPE, PRIORITY):
        if found := _type(attributes.get(name)):
            return found
    return 1


def _type(value: object) -> int:
    """Return 0 for what cannot be a type."""
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        digits = value.lstrip("0")
        value = int(digits or 0) if len(digits) <= LARGEST_DIGITS else 0  # Python reads no more than 4,300
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= LARGEST:
        return value
    return 0
