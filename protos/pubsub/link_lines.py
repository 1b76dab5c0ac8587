"""The lines between neighbours as expressions over bytes, and their encoding (pubsub.md 4.5)."""

import re
from itertools import count

from protos.pubsub.grammar import LF, TAG_ANY, TEXT_ANY, Charset
from protos.pubsub.held import encode_held
from protos.pubsub.link_events import Held
from protos.pubsub.origins import INCARNATION, NUMBER, STORE, is_interval, is_origin
from protos.pubsub.text import escape
from protos.runs import MAX_RUN
from protos.types import LocalError

VERSION = b"1"
BEAT_INTERVAL_S = 5.0  # a link is never silent for longer
MAX_CONTROL_LINE_BYTES = 64 << 10  # of every line but ENTRY and BRIDGED

POSITION = rb"[0-9]{1,20}+-[0-9]{1,20}+"
_ENTRY = NUMBER + rb" " + TAG_ANY + rb"++ " + TEXT_ANY + rb"*+\n"

# Lines of one verb and one origin. Groups: all before the number; verb, store, incarnation.
ENTRY_RUN = re.compile(
    rb"((ENTRY|BRIDGED) (%b) (%b) )%b(?:\1%b){0,%d}" % (STORE, INCARNATION, _ENTRY, _ENTRY, MAX_RUN - 1)
)
LISTING = re.compile(rb"(HAVE|FOLLOW) 1 (%b) (%b) ([^ ]++)(?: (%b))?" % (STORE, INCARNATION, POSITION))
OTHER_VERSION = re.compile(rb"(?:HAVE|FOLLOW) (?!1(?: |\Z))[0-9]++(?: .*)?", re.DOTALL)
GAP = re.compile(rb"GAP (%b) (%b) (%b) (%b)" % (STORE, INCARNATION, NUMBER, NUMBER))
BEAT = re.compile(rb"BEAT(?: (%b))?" % POSITION)
PROBLEM = re.compile(rb"ERROR (%b*+)" % TEXT_ANY)


def encode_have(store: bytes, incarnation: bytes, held: Held) -> bytes:
    """Encode HAVE in as many lines as it takes. Raises LocalError for an illegal name, number or long list."""
    return _listing(b"HAVE", store, incarnation, held, b"")


def encode_follow(store: bytes, incarnation: bytes, held: Held, position: bytes | None = None) -> bytes:
    """Encode FOLLOW; `position` as in the neighbour's Beat. Raises LocalError as HAVE does."""
    return _listing(b"FOLLOW", store, incarnation, held, b" " + position if position else b"")


def encode_entries(
    store: bytes, incarnation: bytes, first: int, block: bytes, bridged: bool = False
) -> bytes:
    """Encode a block of `SEND <tag> <message>` lines as ENTRY lines numbered from `first`, or BRIDGED ones.

    The block has been parsed before and is not checked again. Raises LocalError for an illegal number.
    """
    head = b"%b %b %b " % (b"BRIDGED" if bridged else b"ENTRY", store, incarnation)
    texts = block[5:-1].split(b"\nSEND ")
    if not is_interval(first, first + len(texts) - 1):
        raise LocalError(f"no such numbers: {len(texts)} from {first}")
    return b"".join(
        [b"%b%d %b\n" % (head, number, text) for number, text in zip(count(first), texts, strict=False)]
    )


def encode_gap(store: bytes, incarnation: bytes, first: int, last: int) -> bytes:
    """Encode GAP: those entries are deleted. Raises LocalError for an illegal name or number."""
    if not is_interval(first, last):
        raise LocalError(f"no interval: {first} to {last}")
    return b"GAP %b %d %d\n" % (_origin(store, incarnation), first, last)


def encode_beat(position: bytes | None = None) -> bytes:
    """Encode BEAT; `position`, `<digits>-<digits>`, says up to where our log has been sent."""
    return b"BEAT %b\n" % position if position else b"BEAT\n"


def encode_problem(reason: str) -> bytes:
    """Encode ERROR, the reason why the link is about to be closed."""
    return b"ERROR " + escape(reason.encode("utf-8", "backslashreplace"), Charset.ASCII) + LF


def _listing(verb: bytes, store: bytes, incarnation: bytes, held: Held, end: bytes) -> bytes:
    head = b"%b %b %b " % (verb, VERSION, _origin(store, incarnation))
    *more, last = encode_held(held)
    return b"".join([head + piece + LF for piece in more]) + head + last + end + LF


def _origin(store: bytes, incarnation: bytes) -> bytes:
    if not is_origin(store, incarnation):
        raise LocalError(f"no origin: {store!r} {incarnation!r}")
    return b"%b %b" % (store, incarnation)
