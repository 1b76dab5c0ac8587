"""One client's connection, without I/O: what TCP delivers in, events out (tmq.md 3, 7)."""

from collections.abc import Generator, Iterator

from protos.tmq.events import Event, TransactionStart
from protos.tmq.readers import ROWS, Refusal
from protos.tmq.wire import LONE_FIVE, Dialect, Limits
from protos.types import PeerError

_LONE_FIVE = bytes([LONE_FIVE])


class Connection:
    """Parses one client's requests; knows nothing of queues, transactions or replies.

    `now` is any clock in seconds that never runs backwards. The iterators do their work as they are consumed:
    consume each to its end (or drop the connection) before the next call. The events do not depend on how the
    bytes were cut, except for where runs are cut. Once PeerError was raised, a `Refused` with `close` handed
    out, or the end of input seen, the connection is over: whatever still comes is ignored.

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
        self._grace_s = limits.lone_five_grace_s  # 0 once a code was used that makes it needless
        self._held = bytearray()  # of an unfinished request
        self._needed = 0  # bytes of it before it is worth reading again
        self._refusal: Refusal | None = None  # to be handed out ...
        self._discard_bytes = 0  # ... when so many more bytes have gone by
        self._unfinished_since: float | None = None
        self._is_over = False

    @property
    def buffered(self) -> int:
        """Bytes held of an unfinished request: never more than a head and the largest acceptable body."""
        return len(self._held)

    def receive(self, data: bytes, now: float) -> Iterator[Event]:
        """What `data` completes, in order; then PeerError if an unknown code follows (3.2)."""
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
        """The peer's FIN: makes a lone 5 a TS (3.1); PeerError if it cuts a request short."""
        is_lone_five, is_unfinished = self._is_lone_five(), self._unfinished_since is not None
        self._end()
        if is_lone_five:
            yield TransactionStart()
        elif is_unfinished:
            raise PeerError("truncated")

    def deadline(self) -> float | None:
        """When `on_time` will have something to say; None while nothing is unfinished (7.3)."""
        if self._unfinished_since is None:
            return None
        is_grace = self._is_waiting_for_grace()
        return self._unfinished_since + (self._grace_s if is_grace else self._limits.request_timeout_s)

    def on_time(self, now: float) -> Iterator[Event]:
        """A lone 5 past its grace is a TS (3.1); PeerError for a request unfinished too long (7.3)."""
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
        """Reading had been paused by us, so the silence was not the peer's: all waiting begins anew."""
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
            if row.tells_five_apart:
                self._grace_s = 0
            if isinstance(found, Refusal):
                self._discard_bytes = found.body_bytes
                position = yield from self._discard(found, data, mark)
            else:
                self._unfinished_since = None
                position = mark
                yield found

    def _discard(self, refusal: Refusal, data: bytes, position: int) -> Generator[Event, None, int]:
        """Let a refused body go by, hand out the refusal once all is gone; the position reached."""
        gone = min(self._discard_bytes, len(data) - position)
        self._discard_bytes -= gone
        if self._discard_bytes:
            self._refusal = refusal
        else:
            self._refusal = None
            self._unfinished_since = None
            self._is_over = refusal.refused.close
            yield refusal.refused
        return position + gone

    def _is_lone_five(self) -> bool:
        return self._may_be_ts and self._held == _LONE_FIVE

    def _is_waiting_for_grace(self) -> bool:
        return self._is_lone_five() and 0 < self._grace_s <= self._limits.request_timeout_s

    def _end(self) -> None:
        """Nothing is awaited any more, and nothing listened to."""
        self._held.clear()
        self._refusal = None
        self._unfinished_since = None
        self._is_over = True
