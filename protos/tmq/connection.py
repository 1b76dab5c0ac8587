"""Parse one client's connection, without I/O (tmq.md 3, 7)."""

from collections.abc import Generator, Iterator

from protos.tmq.events import Event, TransactionStart
from protos.tmq.readers import ROWS, Refusal
from protos.tmq.wire import LONE_FIVE, Dialect, Limits
from protos.types import PeerError

_LONE_FIVE = bytes([LONE_FIVE])


class Connection:
    """A parser of one client's requests; it knows nothing of queues, transactions or replies.

    `now` is a monotonic clock in seconds. The iterators parse as they are consumed: consume each to its end, or drop
    the connection, before the next call. The events do not depend on how the bytes were cut, except for where runs are
    cut.
    After PeerError, a `Refused` with `close`, or the end of input, all further input is ignored.

    PeerError reasons: `unknown_code` (3.2), `truncated`, `request_timeout` (7.3).
    """

    __slots__ = (
        "_discard_bytes",
        "_grace_s",
        "_held",
        "_is_over",
        "_limits",
        "_may_be_ts",
        "_needed",
        "_refusal",
        "_rows",
        "_unfinished_since",
    )

    def __init__(self, dialect: Dialect, limits: Limits) -> None:
        self._rows = ROWS[dialect]
        self._limits = limits
        self._may_be_ts = dialect is Dialect.DOCUMENT  # a lone 5 (3.1)
        self._grace_s = (
            limits.lone_five_grace_s
        )  # 0 once the client has used a code that makes it unnecessary
        self._held = bytearray()  # of an unfinished request
        self._needed = 0  # bytes of it before it is parsed again
        self._refusal: Refusal | None = None  # to be returned ...
        self._discard_bytes = 0  # ... after this many more bytes
        self._unfinished_since: float | None = None
        self._is_over = False

    @property
    def buffered(self) -> int:
        """Return the bytes held of an unfinished request: at most a head and the largest acceptable body."""
        return len(self._held)

    def receive(self, data: bytes, now: float) -> Iterator[Event]:
        """Yield the requests that `data` completes. Raises PeerError for an unknown code (3.2)."""
        if self._held:
            self._held += data  # grows in place: a large body may come in many small pieces
            if len(self._held) < self._needed:
                return
            data = bytes(self._held)
            self._held.clear()
        yield from self._parse(data)
        if self._unfinished_since is None and (self._held or self._refusal is not None):
            self._unfinished_since = now

    def receive_eof(self, now: float) -> Iterator[Event]:
        """Handle the peer's FIN: yield a TS for a lone 5 (3.1). Raises PeerError inside a request."""
        is_lone_five, is_unfinished = self._is_lone_five(), self._unfinished_since is not None
        self._end()
        if is_lone_five:
            yield TransactionStart()
        elif is_unfinished:
            raise PeerError("truncated")

    def deadline(self) -> float | None:
        """Return when `on_time` is due; None while no request is unfinished (7.3)."""
        if self._unfinished_since is None:
            return None
        is_grace = self._is_waiting_for_grace()
        return self._unfinished_since + (self._grace_s if is_grace else self._limits.request_timeout_s)

    def on_time(self, now: float) -> Iterator[Event]:
        """Yield a TS for a lone 5 (3.1). Raises PeerError for a request unfinished for too long (7.3)."""
        due = self.deadline()
        if due is None or now < due:
            return
        if not self._is_waiting_for_grace():
            self._end()
            raise PeerError("request_timeout")
        self._held.clear()
        self._unfinished_since = None
        yield TransactionStart()

    def restart_clock(self, now: float) -> None:
        """Restart the deadline: reading was paused, so the silence was not the peer's."""
        if self._unfinished_since is not None:
            self._unfinished_since = now

    def _parse(self, data: bytes) -> Iterator[Event]:
        position = 0
        if self._refusal is not None:
            position = yield from self._discard(self._refusal, data, position)
        while position < len(data) and not self._is_over:
            row = self._rows.get(data[position])
            if row is None:
                self._end()
                raise PeerError("unknown_code", f"0x{data[position]:02x}")  # 3.2
            found, mark = row.read(data, position, row.operation, self._limits)
            if found is None:
                self._held += data[position:]
                self._needed = mark
                return
            if row.is_unambiguous:
                self._grace_s = 0
            if isinstance(found, Refusal):
                self._discard_bytes = found.body_bytes
                position = yield from self._discard(found, data, mark)
            else:
                self._unfinished_since = None
                position = mark
                yield found

    def _discard(self, refusal: Refusal, data: bytes, position: int) -> Generator[Event, None, int]:
        """Skip a refused body; yield the refusal at its end. Return the position reached."""
        skipped = min(self._discard_bytes, len(data) - position)
        self._discard_bytes -= skipped
        if self._discard_bytes:
            self._refusal = refusal
        else:
            self._refusal = None
            self._unfinished_since = None
            self._is_over = refusal.refused.close
            yield refusal.refused
        return position + skipped

    def _is_lone_five(self) -> bool:
        return self._may_be_ts and self._held == _LONE_FIVE

    def _is_waiting_for_grace(self) -> bool:
        return self._is_lone_five() and 0 < self._grace_s <= self._limits.request_timeout_s

    def _end(self) -> None:
        """Ignore all further input."""
        self._held.clear()
        self._refusal = None
        self._unfinished_since = None
        self._is_over = True
