"""Parse dead letters, and filter them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Protocol

import msgpack

ID = re.compile(r"[0-9]{1,20}-[0-9]{1,20}")
MAX_PART = (1 << 64) - 1  # of each half of an id
# docs/store.md, "Reasons of dead letters"; the reason of an UNRELIABLE message over RQP/MCA is the store's refusal
OWN_REASONS = frozenset(
    (
        *(
            "expired",
            "max_deliveries",
            "rejected_full",
            "refused",
            "no_receiver",
            "unconfirmed",
            "held",
            "injured",
        ),
        *("too_large_for_peers", "too_large_for_ring", "too_large_for_queue", "partially_received", "zombie"),
        *("unencodable", "fault"),
    )
)
UNREAD = "\N{REPLACEMENT CHARACTER}"  # replaces octets that are not UTF-8


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A dead message. Times are ms since 1970 by the store's clock; 0 = never delivered."""

    id: str  # opaque; ids of later dead letters sort later
    reason: str  # a label, docs/store.md "Reasons of dead letters"
    error: str  # the text of the last error, '' without one
    origin: str  # the producer, as its edge named it
    acquired: int  # deliveries
    failed: int  # of them
    enqueued_ms: int  # when it was put
    first_ms: int  # of its first delivery
    last_ms: int  # of its last delivery
    died_ms: int  # when it became a dead letter
    body: bytes  # perhaps only a prefix, see `size`
    attributes: dict[str, Any]  # by name, of MessagePack's types
    note: str = ""  # the note of its last holder (`Messages.note`)
    redriven: int = 0  # number of redrives before it died
    size: int = 0  # octets of the whole body, of which `body` may be a prefix

    @classmethod
    def parse(cls, identifier: bytes, size: int, flat: list[bytes]) -> DeadLetter:
        """Parse the flat field list of a stream entry. Raises ValueError, KeyError or TypeError if it is damaged."""
        f = {flat[i].decode(): flat[i + 1] for i in range(0, len(flat), 2)}
        return cls(
            id=identifier.decode(),
            reason=f["reason"].decode(),
            error=f["error"].decode("utf-8", "replace"),
            origin=f["origin"].decode("utf-8", "replace"),
            acquired=int(f["acquired"]),
            failed=int(f["failed"]),
            enqueued_ms=int(f["enqueued"]),
            first_ms=int(f["first"]),
            last_ms=int(f["last"]),
            died_ms=int(f["died"]),
            body=f["body"],
            attributes=msgpack.unpackb(f["attributes"]) if "attributes" in f else {},
            note=f.get("note", b"").decode("utf-8", "replace"),
            redriven=int(f.get("redriven", 0)),
            size=size,
        )


class Pattern(Protocol):
    """A compiled pattern for bodies: of `re`, or of a library with bounded search time."""

    def search(self, text: bytes, /) -> object | None:
        """Return a match, or None."""


@dataclass(frozen=True, slots=True)
class Filter:
    """A selection of dead letters; an empty filter selects all."""

    reasons: tuple[str, ...] = ()  # one of these; () = any
    origin: str = ""  # substring of the origin
    older_than_ms: int = 0  # dead for at least this long
    body: Pattern | None = None  # matches somewhere in the body
    ids: tuple[str, ...] = ()  # one of these; () = any
    died_until_ms: int = 0  # by the store's clock; 0 = any time
    until: str = ""  # id of the last one to select; '' = no bound

    def matches(self, letter: DeadLetter, now_ms: int) -> bool:
        """Return whether everything but the body matches; searching.py matches bodies."""
        return (
            (not self.reasons or letter.reason in self.reasons)
            and self.origin in letter.origin
            and (not self.older_than_ms or now_ms - letter.died_ms >= self.older_than_ms)
            and (not self.died_until_ms or letter.died_ms <= self.died_until_ms)
            and (not self.until or parse_id(letter.id) <= parse_id(self.until))
            and (not self.ids or letter.id in self.ids)
        )

    def as_of(self, ms: int) -> Filter:
        """Return the filter with its relative age fixed at the time `ms`: later dead letters do not match."""
        until = min(ms, self.died_until_ms or ms) - self.older_than_ms
        return replace(self, older_than_ms=0, died_until_ms=max(1, until))

    def arguments(self, now_ms: int) -> list[Any]:
        """Return the arguments with which the Redis function `dead` preselects: a superset of what `matches` accepts.

        Text that no dead letter can contain is accepted, too.
        """
        latest = [now_ms - self.older_than_ms] if self.older_than_ms else []
        latest += [self.died_until_ms] if self.died_until_ms else []
        origin = "" if UNREAD in self.origin else self.origin
        texts = (text.encode("utf-8", "surrogatepass") for text in (origin, *self.reasons))
        return [max(1, min(latest)) if latest else 0, *texts]


def parse_id(identifier: str) -> tuple[int, int]:
    """Return the two numbers of a stream entry's id, by which ids sort."""
    first, _, second = identifier.partition("-")
    return int(first), int(second)


def is_id(text: str) -> bool:
    """Return whether a text is a valid id of a dead letter."""
    return ID.fullmatch(text) is not None and max(parse_id(text)) <= MAX_PART


def is_last_id(identifier: str) -> bool:
    """Return whether this is the highest possible id, which Redis rejects as an exclusive lower bound."""
    return parse_id(identifier) == (MAX_PART, MAX_PART)
