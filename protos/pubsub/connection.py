"""Parse one client's connection, without I/O (pubsub.md 1, 2)."""

from collections.abc import Iterator
from dataclasses import dataclass

from protos.connection_input import ConnectionInput
from protos.pubsub.events import Event, Quit, Refused, Send
from protos.pubsub.grammar import CRLF, FORMS, LF, Charset, Reason, is_of
from protos.pubsub.lines import parse_line


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on what a connection accepts (1.2, 1.4, 2.1, 2.2)."""

    max_line_bytes: int = 64 << 10  # without its end; longer lines are refused
    charset: Charset = Charset.ASCII  # of tags and messages (2.1)
    strict: bool = False  # without the additions
    request_timeout_s: float = 30.0  # how long a line may stay unfinished


class Connection(ConnectionInput[Event]):
    """Parses one client's lines; knows nothing of subscriptions or replies.

    After a `Quit` all input is ignored. PeerError reason: `request_timeout` (1.4). All other errors of clients are a
    `Refused`.
    """

    __slots__ = ("_eol", "_forms", "_is_discarding", "_limits")

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits.request_timeout_s)
        self._limits = limits
        self._forms = FORMS[limits.charset]
        self._is_discarding = False  # the unfinished line is too long: only its last byte is held (1.2)
        self._eol = LF  # of the last line (1.1)

    def receive(self, data: bytes, now: float) -> Iterator[Event]:
        """Yield what `data` completes, in order."""
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
        """Refuse an unfinished line at the client's FIN (1.3)."""
        is_unfinished = bool(self._held)
        self._end()
        if is_unfinished:
            yield Refused(Reason.UNFINISHED, self._eol)

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
        """Return whether the lines of a run of SENDs need not be checked one by one (1.2, 2.1)."""
        longest = self._limits.max_line_bytes
        position, size = 0, len(block)
        while size - position > longest:  # jumps: most lines are never checked
            position = block.rfind(LF, position, position + longest + 1) + 1
            if not position:
                return False
        return is_of(self._limits.charset, block)

    def _sends(self, block: bytes) -> Send:
        """Return a run of SENDs, whose line ends are all alike."""
        if block.endswith(CRLF):
            self._eol = CRLF
            block = block.replace(CRLF, LF)
        else:
            self._eol = LF
        return Send(block, block.count(LF), self._eol)

    def _one(self, line: bytes) -> Event:
        """Parse one line with its end."""
        self._eol = CRLF if line.endswith(CRLF) else LF
        text = line[: -len(self._eol)]
        if len(text) > self._limits.max_line_bytes:
            return Refused(Reason.LINE_TOO_LONG, self._eol)
        return parse_line(text, self._eol, self._limits.charset, self._limits.strict)

    def _hold(self, rest: bytes, now: float) -> None:
        """Keep an unfinished line."""
        if rest:
            self._held += rest
            self._unfinished_since = now
            self._bound_held()
        else:
            self._unfinished_since = None

    def _bound_held(self) -> None:
        """Discard a line that is too long, except its last byte, which may be half of an end (1.2)."""
        if self._is_discarding or len(self._held) > self._limits.max_line_bytes + 1:
            self._is_discarding = True
            del self._held[:-1]

    def _end(self) -> None:
        super()._end()
        self._is_discarding = False
