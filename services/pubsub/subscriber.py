"""A connection that subscribes: its subscriptions, and how far it has been sent what matches them."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from services.kit.session import Wire
from services.store.log import Place


class Subscription:
    """One SUBSCRIBE. It gets what lies behind `since` in the log, up to `until` (pubsub.md 3.2)."""

    __slots__ = ("identifier", "is_late", "is_prefix", "number", "since", "subscriber", "tag", "until")

    def __init__(self, subscriber: Subscriber, identifier: bytes, tag: bytes, is_prefix: bool) -> None:
        self.subscriber = subscriber
        self.identifier = identifier
        self.tag = tag
        self.is_prefix = is_prefix
        self.number = 0  # of all the process's; later ones are greater (3.3)
        self.since: Place | None = None  # None: the store has not said yet
        self.until: Place | None = None  # None: it does not end yet
        self.is_late = False  # the process has got further than `since`: it is served from the log on its own

    def is_open_at(self, place: Place) -> bool:
        """Whether an entry that ends at this place is one of its own."""
        return self.since is not None and self.since < place and (self.until is None or place <= self.until)


by_number = attrgetter("number")  # the order in which they were made


class Subscriber:
    """While `place` is None it is served from memory with all others; else from the log, from there on (3.6)."""

    __slots__ = (
        *("_line", "ascii_only", "by_identifier", "crlf", "lines", "octets", "out", "place", "size"),
        *("unfinished", "wire"),
    )

    def __init__(self, wire: Wire, ascii_only: bool, line: Callable[[bool], None] = lambda _: None) -> None:
        """line(begun): told when a line that goes in pieces is begun, and when it has been written to its end."""
        self.wire = wire
        self.unfinished = False  # a line has been begun: nothing else may be written
        self._line = line
        self.ascii_only = ascii_only
        self.crlf = False  # how its last line ended (1.1)
        self.by_identifier: dict[bytes, Subscription] = {}
        self.place: Place | None = None
        self.out: list[bytes] | None = None  # of the batch at hand
        self.size = 0  # octets of it
        self.lines = 0  # MESSAGEs in it
        self.octets = 0  # of patterns and identifiers

    def begin_line(self) -> None:
        """What is written from now on is one line."""
        self.unfinished = True
        self._line(True)

    def end_line(self) -> None:
        self.unfinished = False
        self._line(False)

    def put(self, data: bytes, lines: int, most: int) -> bool:
        """Adds to the batch at hand, unless it is too much; True if it is the first of it."""
        if self.out is None:
            self.out, self.size, self.lines = [data], len(data), lines
            return True
        self.lines += lines
        self.size += len(data)
        if self.size <= most:
            self.out.append(data)
        return False
