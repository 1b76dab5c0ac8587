"""The origin of an entry: store, incarnation and number, as written between neighbours (pubsub.md 4.4, 4.5)."""

import re

MAX_NUMBER = (1 << 53) - 1  # the largest that the store counts to without loss

STORE = rb"[A-Za-z0-9._-]{1,64}+"
INCARNATION = rb"[0-9a-z]{1,64}+"
NUMBER = rb"[1-9][0-9]{0,15}+"  # `is_interval` checks the value
_ORIGIN = re.compile(STORE + b" " + INCARNATION)


def is_origin(store: bytes, incarnation: bytes) -> bool:
    """Return whether a link can name this origin."""
    return _ORIGIN.fullmatch(b"%b %b" % (store, incarnation)) is not None


def is_interval(first: int, last: int) -> bool:
    """Return whether these are the ends, inclusive, of an interval of numbers."""
    return 1 <= first <= last <= MAX_NUMBER
