"""Cursors: the place where the next page of a list begins. Opaque to clients, and validated like any input."""

from __future__ import annotations

import base64
import binascii
import json

from services.console.contract.problems import Problem

LONGEST = 2048  # characters


def encode_cursor(kind: str, *place: str) -> str:
    """Encode a place in a list. kind: name of the list."""
    text = json.dumps([kind, *place], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def decode_cursor(cursor: str, kind: str, parts: int) -> tuple[str, ...]:
    """Decode the place, a tuple of so many parts. Raises Problem for a cursor of another list."""
    try:
        if len(cursor) > LONGEST:
            raise ValueError
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        found = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, RecursionError, binascii.Error):
        raise bad_cursor() from None
    if not isinstance(found, list) or found[:1] != [kind] or len(found) != parts + 1:
        raise bad_cursor()
    if not all(isinstance(part, str) for part in found):
        raise bad_cursor()
    return tuple(found[1:])


def bad_cursor() -> Problem:
    """Return the problem for an invalid cursor."""
    text = "invalid cursor for this list: omit it, or use `next` of the previous page"
    return Problem(400, "bad_cursor", text)
