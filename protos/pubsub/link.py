"""Parse one link to a neighbour, without I/O (pubsub.md 4.5).

A neighbour is another Penstock. So nothing is tolerated or skipped: any violation of the grammar ends the link.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from protos.connection_input import ConnectionInput
from protos.pubsub.grammar import LF
from protos.pubsub.link_events import LinkEvent
from protos.pubsub.link_lines import ENTRY_RUN, MAX_CONTROL_LINE_BYTES
from protos.pubsub.link_readers import Listing, parse_entries, parse_line, parse_listing
from protos.types import PeerError


@dataclass(frozen=True, slots=True)
class LinkLimits:
    """Limits on what a link accepts."""

    max_line_bytes: int = (64 << 20) + (4 << 10)  # without its end: the largest entry and its head
    request_timeout_s: float = 30.0  # how long a line, or a list of several lines, may stay unfinished
    silence_s: float = 15.0  # a neighbour that sends nothing for this long counts as gone


class LinkConnection(ConnectionInput[LinkEvent]):
    """Parses one neighbour's lines; knows nothing of stores. Its user checks what may come when.

    PeerError reasons: `unknown_verb`, `bad_version`, `bad_line`, `bad_held`, `held_too_long`, `unfinished_list`,
    `line_too_long`, `truncated`, `request_timeout`, `silent`.
    """

    __slots__ = ("_heard_at", "_limits", "_listing")

    def __init__(self, limits: LinkLimits, now: float) -> None:
        super().__init__(limits.request_timeout_s)
        self._limits = limits
        self._listing: Listing | None = None  # an unfinished list
        self._heard_at = now  # when the last byte came

    @property
    def buffered(self) -> int:
        """Bytes held of an unfinished line or list."""
        return len(self._held) + (0 if self._listing is None else self._listing.list.size)

    def receive(self, data: bytes, now: float) -> Iterator[LinkEvent]:
        """Yield what `data` completes, in order; then raise PeerError if something else follows."""
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

    def deadline(self) -> float | None:
        """Return when `on_time` is due; None once the link is over."""
        if self._is_over:
            return None
        silent_at, due = self._heard_at + self._limits.silence_s, super().deadline()
        return silent_at if due is None else min(silent_at, due)

    def on_time(self, now: float) -> Iterator[LinkEvent]:
        """Raise PeerError for a silent neighbour, or for an unfinished line or list."""
        due = self.deadline()
        if due is not None and now >= due:
            is_silent = now >= self._heard_at + self._limits.silence_s
            self._end()
            raise PeerError("silent" if is_silent else "request_timeout")
        yield from ()

    def restart_clock(self, now: float) -> None:
        """Restart all time limits: we had paused reading, so the silence was not the neighbour's."""
        super().restart_clock(now)
        self._heard_at = now

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
        """Parse a line that is not an ENTRY; None for one that only continues a list."""
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
        super()._end()
        self._listing = None
