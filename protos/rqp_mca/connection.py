"""One connection between two MCAs, without I/O: what TCP delivers in, events out (rqp_mca.md 1, 2.4)."""

from collections.abc import Iterator
from typing import Generic

from protos.rqp_mca.events import Confirm, Request
from protos.rqp_mca.layouts import LAYOUTS, PROFILES, Layout
from protos.rqp_mca.readers import TO_RECEIVER, TO_SENDER, EventT, Readers, message_id
from protos.rqp_mca.wire import Limits, Profile
from protos.types import PeerError


class _Connection(Generic[EventT]):
    """What both sides have in common; `profile` is None until the first octet has told it."""

    __slots__ = ("_held", "_is_over", "_limits", "_needed", "_readers", "_unfinished_since", "profile")

    def __init__(self, profile: Profile | None, readers: Readers[EventT], limits: Limits) -> None:
        self.profile = profile
        self._readers = readers
        self._limits = limits
        self._held = bytearray()  # of an unfinished message
        self._needed = 0  # bytes of it before it is worth reading again
        self._unfinished_since: float | None = None
        self._is_over = False

    @property
    def buffered(self) -> int:
        """Bytes held of an unfinished message: never more than a head and the largest acceptable body."""
        return len(self._held)

    def receive(self, data: bytes, now: float) -> Iterator[EventT]:
        """What `data` completes, in order; then PeerError if something else follows."""
        if self._is_over:
            return
        if self._held:
            self._held += data  # grows in place: a large body may come in many small pieces
            if len(self._held) < self._needed:
                return
            data = bytes(self._held)
            self._held.clear()
        try:
            yield from self._parse(data)
        except PeerError:
            self._end()
            raise
        if self._unfinished_since is None and self._held:
            self._unfinished_since = now

    def receive_eof(self, now: float) -> Iterator[EventT]:
        """The peer's FIN; PeerError if it cuts a message short."""
        is_unfinished = self._unfinished_since is not None
        self._end()
        if is_unfinished:
            raise PeerError("truncated")
        yield from ()

    def deadline(self) -> float | None:
        """When `on_time` will have something to say; None while nothing is unfinished (1.5)."""
        since = self._unfinished_since
        return None if since is None else since + self._limits.request_timeout_s

    def on_time(self, now: float) -> Iterator[EventT]:
        """PeerError for a message unfinished too long (1.5)."""
        due = self.deadline()
        if due is not None and now >= due:
            self._end()
            raise PeerError("request_timeout")
        yield from ()

    def restart_clock(self, now: float) -> None:
        """Reading had been paused by us, so the silence was not the peer's: the waiting begins anew."""
        if self._unfinished_since is not None:
            self._unfinished_since = now

    def _parse(self, data: bytes) -> Iterator[EventT]:
        if not data:
            return
        if self.profile is None:
            self.profile = _profile_of(data[0])
        layout, position = LAYOUTS[self.profile], 0
        while position < len(data):
            found, mark = self._read(data, position, layout)
            if found is None:
                self._held += data[position:]
                self._needed = mark
                return
            self._unfinished_since = None
            position = mark
            yield found

    def _read(self, data: bytes, start: int, layout: Layout) -> tuple[EventT | None, int]:
        """As a reader does, whatever the message at `start` is."""
        if len(data) - start < layout.message_bytes:
            return None, layout.message_bytes
        message = message_id(layout.id_of(data, start))
        read = self._readers.get(message)
        if read is None:
            raise PeerError("unexpected_message", message.name)  # of the other direction
        return read(data, start, layout, self._limits)

    def _end(self) -> None:
        """Nothing is awaited any more, and nothing listened to."""
        self._held.clear()
        self._unfinished_since = None
        self._is_over = True


class ReceiverConnection(_Connection[Request]):
    """What a receiving MCA reads: data and questions, in whichever profile the sender speaks; knows no queues.

    `profile` is None before the first octet; answers are encoded in it. `now` is any clock in seconds that never runs
    backwards. The iterators do their work as they are consumed: consume each to its end (or drop the connection)
    before the next call. The events do not depend on how the bytes were cut, except for where runs are cut. Once
    PeerError was raised, or the end of input seen, the connection is over: whatever still comes is ignored.

    PeerError reasons: `unknown_profile`, `bad_uint4`, `bad_type`, `bad_padding` (1.2), `unknown_message`,
    `unexpected_message`, `message_too_large` (2.4), `truncated`, `request_timeout` (1.5).
    """

    __slots__ = ()

    def __init__(self, limits: Limits) -> None:
        super().__init__(None, TO_RECEIVER, limits)


class SenderConnection(_Connection[Confirm]):
    """What a sending MCA reads: confirms, in the profile that it sends in. What may come when is for `Sender` to judge.

    `now`, the iterators, the cuts of the bytes and the end are as in `ReceiverConnection`.

    PeerError reasons: `bad_uint4`, `bad_padding` (1.2), `unknown_message`, `unexpected_message` (1.4), `truncated`,
    `request_timeout` (1.5).
    """

    __slots__ = ()

    def __init__(self, profile: Profile, limits: Limits) -> None:
        super().__init__(profile, TO_SENDER, limits)


def _profile_of(octet: int) -> Profile:
    """What the first octet of a connection tells (1.2)."""
    profile = PROFILES.get(octet)
    if profile is None:
        raise PeerError("unknown_profile", f"0x{octet:02x}")
    return profile
