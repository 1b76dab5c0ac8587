"""Cursors: where a list goes on. Opaque to whoever gets one, and checked like anything that comes from outside."""

from __future__ import annotations

import base64
import binascii
import json

from services.console.contract.problems import Problem

LONGEST = 2048  # characters


def encode_cursor(kind: str, *place: str) -> str:
    """kind: which list; place: where in it."""
    text = json.dumps([kind, *place], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def decode_cursor(cursor: str, kind: str, parts: int) -> tuple[str, ...]:
    """The place, of so many parts. Raises Problem for one that is none of this list's."""
    try:
        if len(cursor) > LONGEST:
            raise ValueError
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        found = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, RecursionError, binascii.Error):
        raise _bad() from None
    if not isinstance(found, list) or found[:1] != [kind] or len(found) != parts + 1:
        raise _bad()
    if not all(isinstance(part, str) for part in found):
        raise _bad()
    return tuple(found[1:])


def _bad() -> Problem:
    text = "this is no cursor of this list: leave it out, or take `next` of the page before"
    return Problem(400, "bad_cursor", text)
