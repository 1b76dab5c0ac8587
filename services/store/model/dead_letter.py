"""A dead letter, and which of them are meant."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Protocol

import msgpack

ID = re.compile(r"[0-9]{1,20}-[0-9]{1,20}")
MAX_PART = (1 << 64) - 1  # of each half of an id
# docs/store.md, "Reasons of dead letters"; an UNRELIABLE message over RQP/MCA dies of what the store refused it for
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
UNREAD = "\N{REPLACEMENT CHARACTER}"  # stands for octets that are no text


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One dead message. Times are ms since 1970 of the store's clock; 0 = never delivered."""

    id: str  # opaque, but later ones sort later
    reason: str
    error: str
    origin: str
    acquired: int  # deliveries
    failed: int  # of them
    enqueued_ms: int
    first_ms: int
    last_ms: int
    died_ms: int
    body: bytes
    attributes: dict[str, Any]
    note: str = ""  # what was written beside it while it was tried
    redriven: int = 0  # how often it had been brought back before it died
    size: int = 0  # octets of the whole body; `body` may be its beginning

    @classmethod
    def parse(cls, identifier: bytes, size: int, flat: list[bytes]) -> DeadLetter:
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
    """What a body has to match: one of `re`, or of whoever bounds the time of a search."""

    def search(self, text: bytes, /) -> object | None: ...


@dataclass(frozen=True, slots=True)
class Filter:
    """Which dead letters are meant; an empty one means all."""

    reasons: tuple[str, ...] = ()
    origin: str = ""  # a part of the origin
    older_than_ms: int = 0  # dead for at least this long
    body: Pattern | None = None
    ids: tuple[str, ...] = ()
    died_until_ms: int = 0  # of the store's clock; 0 = whenever
    until: str = ""  # the last one's id; '' = the last there is

    def matches(self, letter: DeadLetter, now_ms: int) -> bool:
        """All but the body, on which a pattern is tried elsewhere (searching.py)."""
        return (
            (not self.reasons or letter.reason in self.reasons)
            and self.origin in letter.origin
            and (not self.older_than_ms or now_ms - letter.died_ms >= self.older_than_ms)
            and (not self.died_until_ms or letter.died_ms <= self.died_until_ms)
            and (not self.until or age_of(letter.id) <= age_of(self.until))
            and (not self.ids or letter.id in self.ids)
        )

    def as_of(self, ms: int) -> Filter:
        """Those that it meant at this moment: what died later, or was not dead for long enough, is not meant."""
        until = min(ms, self.died_until_ms or ms) - self.older_than_ms
        return replace(self, older_than_ms=0, died_until_ms=max(1, until))

    def arguments(self, now_ms: int) -> list[Any]:
        """What the store can see to itself, as the function `dead` takes it: it lets through what `matches`, and more.

        Raises no error for text that no letter can have.
        """
        latest = [now_ms - self.older_than_ms] if self.older_than_ms else []
        latest += [self.died_until_ms] if self.died_until_ms else []
        origin = "" if UNREAD in self.origin else self.origin
        texts = (text.encode("utf-8", "surrogatepass") for text in (origin, *self.reasons))
        return [max(1, min(latest)) if latest else 0, *texts]


def age_of(identifier: str) -> tuple[int, ...]:
    """By which ids sort."""
    return tuple(map(int, identifier.split("-")))


def is_id(text: str) -> bool:
    """Whether a dead letter could have it."""
    return ID.fullmatch(text) is not None and max(age_of(text)) <= MAX_PART


def is_last_id(identifier: str) -> bool:
    """None can come behind it, and the store does not take it as what is to be gone on from."""
    return age_of(identifier) == (MAX_PART, MAX_PART)
