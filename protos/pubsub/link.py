"""One link to a neighbour, without I/O: what TCP delivers in, events out (pubsub.md 4.5).

A neighbour is a program of ours. So nothing is forgiven and nothing skipped: whatever breaks the grammar ends the link.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from protos.pubsub.grammar import LF
from protos.pubsub.link_events import LinkEvent
from protos.pubsub.link_lines import ENTRY_RUN, MAX_CONTROL_LINE_BYTES
from protos.pubsub.link_readers import Listing, parse_entries, parse_line, parse_listing
from protos.types import PeerError


@dataclass(frozen=True, slots=True)
class LinkLimits:
    """What a link accepts."""

    max_line_bytes: int = (64 << 20) + (
        4 << 10
    )  # without its end: the largest entry and what stands before it
    request_timeout_s: float = 30.0  # how long a line, or a list of several lines, may stay unfinished
    silence_s: float = 15.0  # without a byte for so long the neighbour counts as gone


class LinkConnection:
    """Parses one neighbour's lines; knows nothing of stores. What may come when is for its user to judge.

    `now`, the iterators and the cuts of the bytes are as in `Connection`. Once PeerError was raised or the end of
    input seen, the link is over: whatever still comes is ignored.

    PeerError reasons: `unknown_verb`, `bad_version`, `bad_line`, `bad_held`, `held_too_long`, `unfinished_list`,
    `line_too_long`, `truncated`, `request_timeout`, `silent`.
    """

    __slots__ = ("_heard_at", "_held", "_is_over", "_limits", "_listing", "_unfinished_since")

    def __init__(self, limits: LinkLimits, now: float) -> None:
        self._limits = limits
        self._held = bytearray()  # of an unfinished line
        self._listing: Listing | None = None  # an unfinished list
        self._unfinished_since: float | None = None  # either of them
        self._heard_at = now  # the last byte
        self._is_over = False

    @property
    def buffered(self) -> int:
        """Bytes held of an unfinished line or list."""
        return len(self._held) + (0 if self._listing is None else self._listing.list.size)

    def receive(self, data: bytes, now: float) -> Iterator[LinkEvent]:
        """What `data` completes, in order; then PeerError if something else follows."""
        if self._is_over or not data:
            return
        self._heard_at = now
        try:
            if self._held:
                self._held += data  # grows in place: a large entry comes in many small pieces
                if LF not in data:
                    self._bound_held()
                    return
                data = bytes(self._held)
                self._held.clear()
            yield from self._parse(data, now)
        except PeerError:
            self._end()
            raise

    def receive_eof(self, now: float) -> Iterator[LinkEvent]:
        """The neighbour's FIN; PeerError if it cuts a line or a list short."""
        is_unfinished = self._unfinished_since is not None
        self._end()
        if is_unfinished:
            raise PeerError("truncated")
        yield from ()

    def deadline(self) -> float | None:
        """When `on_time` will have something to say; None once the link is over."""
        if self._is_over:
            return None
        silent_at = self._heard_at + self._limits.silence_s
        if self._unfinished_since is None:
            return silent_at
        return min(silent_at, self._unfinished_since + self._limits.request_timeout_s)

    def on_time(self, now: float) -> Iterator[LinkEvent]:
        """PeerError for a silent neighbour, or for one that does not finish what it began."""
        due = self.deadline()
        if due is not None and now >= due:
            is_silent = now >= self._heard_at + self._limits.silence_s
            self._end()
            raise PeerError("silent" if is_silent else "request_timeout")
        yield from ()

    def restart_clock(self, now: float) -> None:
        """Reading had been paused by us, so the silence was not the neighbour's: all waiting begins anew."""
        self._heard_at = now
        if self._unfinished_since is not None:
            self._unfinished_since = now

    def _parse(self, data: bytes, now: float) -> Iterator[LinkEvent]:
        position, began = 0, self._unfinished_since
        while position < len(data):
            if self._listing is None and (found := ENTRY_RUN.match(data, position)):
                yield from parse_entries(found[1], found[0], self._limits.max_line_bytes)
                position, began = found.end(), None
            elif end := data.find(LF, position) + 1:
                event = self._line(data[position : end - 1])
                position = end
                if event is not None:
                    yield event
                    began = None
            else:
                break
        self._held += data[position:]
        self._bound_held()
        is_unfinished = position < len(data) or self._listing is not None
        self._unfinished_since = (now if began is None else began) if is_unfinished else None

    def _line(self, line: bytes) -> LinkEvent | None:
        """The event of a line that is no ENTRY; None for one that only goes on with a list."""
        verb = line.partition(b" ")[0]
        is_entry = verb in (b"ENTRY", b"BRIDGED")
        longest = self._limits.max_line_bytes
        if len(line) > (longest if is_entry else min(longest, MAX_CONTROL_LINE_BYTES)):
            raise PeerError("line_too_long")
        if verb in (b"HAVE", b"FOLLOW"):
            return self._list(line)
        if self._listing is not None:
            raise PeerError("unfinished_list")
        return parse_line(verb, line)

    def _list(self, line: bytes) -> LinkEvent | None:
        listing, position, goes_on = parse_listing(line, self._listing)
        self._listing = listing if goes_on else None
        return None if goes_on else listing.event(position)

    def _bound_held(self) -> None:
        if len(self._held) > self._limits.max_line_bytes:
            raise PeerError("line_too_long")

    def _end(self) -> None:
        """Nothing is awaited any more, and nothing listened to."""
        self._held.clear()
        self._listing = None
        self._unfinished_since = None
        self._is_over = True
