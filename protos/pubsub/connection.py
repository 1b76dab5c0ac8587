"""One client's connection, without I/O: what TCP delivers in, events out (pubsub.md 1, 2)."""

from collections.abc import Iterator
from dataclasses import dataclass

from protos.pubsub.events import Event, Quit, Refused, Send
from protos.pubsub.grammar import CRLF, FORMS, LF, Charset, Reason, is_of
from protos.pubsub.lines import parse_line
from protos.types import PeerError


@dataclass(frozen=True, slots=True)
class Limits:
    """What a connection accepts (1.2, 1.4, 2.1, 2.2)."""

    max_line_bytes: int = 64 << 10  # without its end; longer lines are refused
    charset: Charset = Charset.ASCII
    strict: bool = False  # without the additions
    request_timeout_s: float = 30.0  # how long a line may stay unfinished


class Connection:
    """Parses one client's lines; knows nothing of subscriptions or replies.

    `now` is any clock in seconds that never runs backwards. The iterators do their work as they are consumed:
    consume each to its end (or drop the connection) before the next call. The events do not depend on how the bytes
    were cut, except for where runs are cut. Once PeerError was raised, a `Quit` handed out, or the end of input
    seen, the connection is over: whatever still comes is ignored.

    PeerError reason: `request_timeout` (1.4). All else that clients do wrong is a `Refused`.
    """

    __slots__ = ("_eol", "_forms", "_held", "_is_discarding", "_is_over", "_limits", "_unfinished_since")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._forms = FORMS[limits.charset]
        self._held = bytearray()  # of an unfinished line
        self._is_discarding = (
            False  # that line is too long: of what is thrown away the last byte is held (1.2)
        )
        self._eol = LF  # of the last line (1.1)
        self._unfinished_since: float | None = None
        self._is_over = False

    @property
    def buffered(self) -> int:
        """Bytes held of an unfinished line: never more than the longest line allowed and half of its end."""
        return len(self._held)

    def receive(self, data: bytes, now: float) -> Iterator[Event]:
        """What `data` completes, in order."""
        if self._held:
            self._held += data  # grows in place: a long line may come in many small pieces
            if LF not in data:
                self._bound_held()
                return
            data = bytes(self._held)
            self._held.clear()
        if data and not self._is_over:
            yield from self._parse(data, now)

    def receive_eof(self, now: float) -> Iterator[Event]:
        """The peer's FIN: a line without an end is none (1.3)."""
        is_unfinished = bool(self._held)
        self._end()
        if is_unfinished:
            yield Refused(Reason.UNFINISHED, self._eol)

    def deadline(self) -> float | None:
        """When `on_time` will have something to say; None while no line is unfinished (1.4)."""
        since = self._unfinished_since
        return None if since is None else since + self._limits.request_timeout_s

    def on_time(self, now: float) -> Iterator[Event]:
        """PeerError for a line unfinished too long (1.4)."""
        due = self.deadline()
        if due is not None and now >= due:
            self._end()
            raise PeerError("request_timeout")
        yield from ()

    def restart_clock(self, now: float) -> None:
        """Reading had been paused by us, so the silence was not the peer's: the waiting begins anew."""
        if self._unfinished_since is not None:
            self._unfinished_since = now

    def _parse(self, data: bytes, now: float) -> Iterator[Event]:
        position = 0
        if self._is_discarding:
            position = data.find(LF) + 1
            self._is_discarding = False
            self._eol = CRLF if data.endswith(CRLF, 0, position) else LF
            yield Refused(Reason.LINE_TOO_LONG, self._eol)
        forms = self._forms
        while position < len(data):
            if found := forms.run_lf.match(data, position) or forms.run_crlf.match(data, position):
                position, block = found.end(), found.group()
                if self._is_fine(block):
                    yield self._sends(block)
                else:
                    yield from map(self._one, block.splitlines(keepends=True))
            elif end := data.find(LF, position) + 1:
                event, position = self._one(data[position:end]), end
                if isinstance(event, Quit):
                    self._end()
                    yield event
                    return
                yield event
            else:
                break
        self._hold(data[position:], now)

    def _is_fine(self, block: bytes) -> bool:
        """Whether a run of SENDs needs no closer look at its lines (1.2, 2.1)."""
        longest = self._limits.max_line_bytes
        position, size = 0, len(block)
        while size - position > longest:  # jumps: most lines are never looked at
            position = block.rfind(LF, position, position + longest + 1) + 1
            if not position:
                return False
        return is_of(self._limits.charset, block)

    def _sends(self, block: bytes) -> Send:
        """A run of SENDs; their ends are all alike."""
        if block.endswith(CRLF):
            self._eol = CRLF
            block = block.replace(CRLF, LF)
        else:
            self._eol = LF
        return Send(block, block.count(LF), self._eol)

    def _one(self, line: bytes) -> Event:
        """One line with its end."""
        self._eol = CRLF if line.endswith(CRLF) else LF
        text = line[: -len(self._eol)]
        if len(text) > self._limits.max_line_bytes:
            return Refused(Reason.LINE_TOO_LONG, self._eol)
        return parse_line(text, self._eol, self._limits.charset, self._limits.strict)

    def _hold(self, rest: bytes, now: float) -> None:
        """An unfinished line waits for the rest of it."""
        if rest:
            self._held += rest
            self._unfinished_since = now
            self._bound_held()
        else:
            self._unfinished_since = None

    def _bound_held(self) -> None:
        """A line that is too long already is not kept; its last byte may be half of an end (1.2)."""
        if self._is_discarding or len(self._held) > self._limits.max_line_bytes + 1:
            self._is_discarding = True
            del self._held[:-1]

    def _end(self) -> None:
        """Nothing is awaited any more, and nothing listened to."""
        self._held.clear()
        self._unfinished_since = None
        self._is_discarding = False
        self._is_over = True
