"""Parse one connection between two MCAs, without I/O (rqp_mca.md 1, 2.4)."""

from collections.abc import Iterator

from protos.connection_input import ConnectionInput
from protos.rqp_mca.events import Confirm, Request
from protos.rqp_mca.layouts import LAYOUTS, PROFILES, Layout
from protos.rqp_mca.readers import TO_RECEIVER, TO_SENDER, EventT, Readers, message_id
from protos.rqp_mca.wire import Limits, Profile
from protos.types import PeerError


class AgentConnection(ConnectionInput[EventT]):
    """The common part of both sides; `profile` is None until the first octet has determined it."""

    __slots__ = ("_limits", "_readers", "profile")

    def __init__(self, profile: Profile | None, readers: Readers[EventT], limits: Limits) -> None:
        super().__init__(limits.request_timeout_s)
        self.profile = profile
        self._readers = readers
        self._limits = limits

    def _parse(self, data: bytes, now: float) -> Iterator[EventT]:
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
        """Read the message at `start`, as a reader does."""
        if len(data) - start < layout.message_bytes:
            return None, layout.message_bytes
        message = message_id(layout.id_of(data, start))
        read = self._readers.get(message)
        if read is None:
            raise PeerError("unexpected_message", message.name)  # of the other direction
        return read(data, start, layout, self._limits)


class ReceiverConnection(AgentConnection[Request]):
    """Parses what a receiving MCA reads: data and requests, in the sender's profile; knows no queues.

    Answers are encoded in `profile`, None before the first octet.

    PeerError reasons: `unknown_profile`, `bad_uint4`, `bad_type`, `bad_padding` (1.2), `unknown_message`,
    `unexpected_message`, `message_too_large` (2.4), `truncated`, `request_timeout` (1.5).
    """

    __slots__ = ()

    def __init__(self, limits: Limits) -> None:
        super().__init__(None, TO_RECEIVER, limits)


class SenderConnection(AgentConnection[Confirm]):
    """Parses what a sending MCA reads: confirms, in its own profile. `Sender` checks what may come when.

    PeerError reasons: `bad_uint4`, `bad_padding` (1.2), `unknown_message`, `unexpected_message` (1.4), `truncated`,
    `request_timeout` (1.5).
    """

    __slots__ = ()

    def __init__(self, profile: Profile, limits: Limits) -> None:
        super().__init__(profile, TO_SENDER, limits)


def _profile_of(octet: int) -> Profile:
    """Return the profile that the first octet of a connection determines (1.2)."""
    profile = PROFILES.get(octet)
    if profile is None:
        raise PeerError("unknown_profile", f"0x{octet:02x}")
    return profile
