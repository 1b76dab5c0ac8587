"""Where an entry arose: store, incarnation and number, as they are written between neighbours (pubsub.md 4.4, 4.5)."""

import re

MAX_NUMBER = (1 << 53) - 1  # the largest that the store counts to without loss

STORE = rb"[A-Za-z0-9._-]{1,64}+"
INCARNATION = rb"[0-9a-z]{1,64}+"
NUMBER = rb"[1-9][0-9]{0,15}+"  # the value is looked at apart: `is_interval`
_ORIGIN = re.compile(STORE + b" " + INCARNATION)


def is_origin(store: bytes, incarnation: bytes) -> bool:
    """Whether a link can name them."""
    return _ORIGIN.fullmatch(b"%b %b" % (store, incarnation)) is not None


def is_interval(first: int, last: int) -> bool:
    """Whether these are the ends, both in, of an interval of numbers."""
    return 1 <= first <= last <= MAX_NUMBER
