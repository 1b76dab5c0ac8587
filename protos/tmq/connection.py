"""Parse one client's connection, without I/O (tmq.md 3, 7)."""

from collections.abc import Generator, Iterator

from protos.connection_input import ConnectionInput
from protos.tmq.events import Event, TransactionStart
from protos.tmq.readers import ROWS, Refusal
from protos.tmq.wire import LONE_FIVE, Dialect, Limits
from protos.types import PeerError

_LONE_FIVE = bytes([LONE_FIVE])


class Connection(ConnectionInput[Event]):
    """Parses one client's requests; knows nothing of queues, transactions or replies.

    After a `Refused` with `close` all input is ignored. PeerError reasons: `unknown_code` (3.2), `truncated`,
    `request_timeout` (7.3).
    """

    __slots__ = ("_discard_bytes", "_grace_s", "_limits", "_may_be_ts", "_refusal", "_rows")

    def __init__(self, dialect: Dialect, limits: Limits) -> None:
        super().__init__(limits.request_timeout_s)
        self._rows = ROWS[dialect]
        self._limits = limits
        self._may_be_ts = dialect is Dialect.DOCUMENT  # a lone 5 (3.1)
        self._grace_s = limits.lone_five_grace_s  # 0 once a code was used that makes it needless
        self._refusal: Refusal | None = None  # to be yielded ...
        self._discard_bytes = 0  # ... when this many more bytes have been skipped

    def receive_eof(self, now: float) -> Iterator[Event]:
        """Yield TS for a lone 5 (3.1); raise PeerError if the peer's FIN cuts a request short."""
        if self._is_lone_five():
            self._end()
            yield TransactionStart()
        else:
            yield from super().receive_eof(now)

    def deadline(self) -> float | None:
        """Return when `on_time` is due; None while nothing is unfinished (7.3)."""
        if self._unfinished_since is not None and self._is_waiting_for_grace():
            return self._unfinished_since + self._grace_s
        return super().deadline()

    def on_time(self, now: float) -> Iterator[Event]:
        """Yield TS for a lone 5 past its grace (3.1); raise PeerError for a request unfinished too long (7.3)."""
        if not self._is_waiting_for_grace():
            yield from super().on_time(now)
            return
        due = self.deadline()
        if due is not None and now >= due:
            self._held.clear()
            self._unfinished_since = None
            yield TransactionStart()

    def _parse(self, data: bytes, now: float) -> Iterator[Event]:
        position = 0
        if self._refusal is not None:
            position = yield from self._discard(self._refusal, data, position, now)
        while position < len(data) and not self._is_over:
            row = self._rows.get(data[position])
            if row is None:
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
                position = yield from self._discard(found, data, mark, now)
            else:
                self._unfinished_since = None
                position = mark
                yield found

    def _discard(
        self, refusal: Refusal, data: bytes, position: int, now: float
    ) -> Generator[Event, None, int]:
        """Skip a refused body, yield the refusal once all of it is skipped, and return the position reached."""
        skipped = min(self._discard_bytes, len(data) - position)
        self._discard_bytes -= skipped
        if self._discard_bytes:
            self._refusal = refusal
            if self._unfinished_since is None:
                self._unfinished_since = now
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
        super()._end()
        self._refusal = None
