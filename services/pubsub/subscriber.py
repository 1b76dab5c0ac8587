"""A connection with subscriptions, and up to where it has been served."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from services.kit.session import Wire
from services.store.log import Place


class Subscription:
    """One SUBSCRIBE. It gets messages of the log after `since`, up to `until` (pubsub.md 3.2)."""

    __slots__ = ("identifier", "is_late", "is_prefix", "number", "since", "subscriber", "tag", "until")

    def __init__(self, subscriber: Subscriber, identifier: bytes, tag: bytes, is_prefix: bool) -> None:
        self.subscriber = subscriber
        self.identifier = identifier
        self.tag = tag
        self.is_prefix = is_prefix
        self.number = 0  # within the process; greater for later ones (3.3)
        self.since: Place | None = None  # None: not known yet
        self.until: Place | None = None  # None: it has no end yet
        self.is_late = False  # it began before the fanout's place and is served from the log on its own

    def is_open_at(self, place: Place) -> bool:
        """Return whether it gets an entry that ends at this place."""
        return self.since is not None and self.since < place and (self.until is None or place <= self.until)


by_number = attrgetter("number")  # the order in which they were made


class Subscriber:
    """A connection. While `place` is None, the fanout serves it from memory; else it is served from the log (3.6)."""

    __slots__ = (
        *("_line", "ascii_only", "by_identifier", "crlf", "lines", "octets", "out", "place", "size"),
        *("unfinished", "wire"),
    )

    def __init__(self, wire: Wire, ascii_only: bool, line: Callable[[bool], None] = lambda _: None) -> None:
        """line(begun): called when a line in pieces is begun, and when it is complete."""
        self.wire = wire
        self.unfinished = False  # a line was begun: nothing else may be written
        self._line = line
        self.ascii_only = ascii_only
        self.crlf = False  # how its last line ended (1.1)
        self.by_identifier: dict[bytes, Subscription] = {}
        self.place: Place | None = None
        self.out: list[bytes] | None = None  # output of the current batch
        self.size = 0  # octets of it
        self.lines = 0  # MESSAGEs in it
        self.octets = 0  # of patterns and identifiers

    def begin_line(self) -> None:
        """Begin a line in pieces."""
        self.unfinished = True
        self._line(True)

    def end_line(self) -> None:
        """End a line in pieces."""
        self.unfinished = False
        self._line(False)

    def put(self, data: bytes, lines: int, most: int) -> bool:
        """Add output to the current batch, up to `most` octets. Return whether it is the first of the batch."""
        if self.out is None:
            self.out, self.size, self.lines = [data], len(data), lines
            return True
        self.lines += lines
        self.size += len(data)
        if self.size <= most:
            self.out.append(data)
        return False
