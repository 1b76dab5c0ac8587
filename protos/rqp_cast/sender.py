"""A sending agent's work for one key, without I/O: one message after the other (rqp_cast.md 4)."""

from dataclasses import dataclass, replace

from protos.rqp_cast.messages import EndTransmissionMsg
from protos.rqp_cast.sender_actions import (
    Approve,
    Ask,
    Bury,
    CloseAll,
    Hold,
    Keep,
    Kept,
    MoveToEnd,
    Offer,
    Outgoing,
    PutBack,
    Refuse,
    Remove,
    SendData,
    SenderAction,
    Unheard,
    Why,
)
from protos.rqp_cast.sender_table import SENDER_TRANSITIONS, SenderMove, SenderState
from protos.rqp_cast.wire import CONNECT_TIMEOUT_S, Result
from protos.types import LocalError

Actions = list[SenderAction]

# The outcome of a time-out or a failed connection.
_VAIN = {
    SenderState.WAIT_FOR_RECEIVER: Why.NO_ANSWER,
    SenderState.APPROVING: Why.NOT_BEGUN,
    SenderState.CONNECTING: Why.NOT_BEGUN,
    SenderState.SENDING: Why.CUT_SHORT,
    SenderState.WAIT_FOR_CONFIRMATION: Why.NOT_CONFIRMED,
    SenderState.BROKEN_OFF: Why.CUT_SHORT,
}
_LISTENING = (SenderState.SENDING, SenderState.WAIT_FOR_CONFIRMATION, SenderState.BROKEN_OFF)
_GOOD = (SenderMove.SUCCESS, SenderMove.SENT_UNCERTAIN)  # the next message may follow at once


@dataclass(frozen=True, slots=True)
class SenderSettings:
    """Time limits and retries of a sending agent (3, 4)."""

    t_wait1_s: float = 2.0  # for an answer
    t_wait4_s: float = 15.0  # for the confirmation, from when it is listened for; no attempt lasts longer
    broken_off_s: float = CONNECT_TIMEOUT_S  # for a FAILURE that says why the connection broke
    max_attempts: int = 20  # FAILUREs before a message is given up
    first_backoff_s: float = 1.0  # after the first FAILURE; doubles with each
    max_backoff_s: float = 60.0  # the longest pause after a FAILURE
    dedupe_window_s: float = 24 * 3600.0  # how long receivers remember an id (5.4)
    hold_margin_s: float = 3600.0  # a message is repeated only for the window less this


class Sender:
    """Decides what to do with the messages for one key; holds no bodies and no sockets.

    `now` is any clock in seconds that never runs backwards. Carry out the actions of a call in their order, and before
    the next call. A step that comes too late does what `on_time` would have done instead. Reports about an attempt that
    is over change nothing. Raises LocalError for a message while another one is under way or before its time, and for
    steps out of order.

    It may be dropped at any time, as by a crash: what it needs again is in `Kept`.
    """

    __slots__ = ("_asked_at", "_bound", "_deadline", "_key", "_message", "_offer", "_settings", "_state")

    def __init__(self, key: int, settings: SenderSettings) -> None:
        self._key = key
        self._settings = settings
        self._state = SenderState.IDLE
        self._message: Outgoing | None = None
        self._bound = Kept()  # what is kept with it from the first octet on
        self._offer: Offer | None = None  # the answer that was taken
        self._asked_at = 0.0
        self._deadline: float | None = None

    @property
    def state(self) -> SenderState:
        """The state: at IDLE the next message may be given."""
        return self._state

    def deadline(self) -> float | None:
        """Return when `on_time` is due."""
        return self._deadline

    def on_time(self, now: float) -> Actions:
        """Handle time-outs, and the end of a pause, which has no actions. Report earlier events first."""
        if self._deadline is None or now < self._deadline:
            return []
        if self._state is SenderState.PAUSING:
            self._rested()
            return []
        is_broken = self._state is SenderState.BROKEN_OFF
        return self._in_vain(SenderMove.UNEXPLAINED if is_broken else SenderMove.TIME_OUT, now)

    def send(self, message: Outgoing, now: float) -> Actions:
        """Begin the next message (4.1): Ask, or Hold if it is too old."""
        if self._state is SenderState.PAUSING:
            self.on_time(now)  # it may be over by now
        not_before = message.kept.not_before
        if not_before is not None and now < not_before:
            raise LocalError("a message before its time")
        if self._is_too_old(message.kept, now):
            self._move(SenderMove.TOO_OLD)
            return [Hold(message.kept)]
        self._move(SenderMove.MESSAGE)
        self._message = message
        self._asked_at, self._deadline = now, now + self._settings.t_wait1_s
        return [Ask(message.kept.receiver)]

    def answered(self, offer: Offer, now: float) -> Actions:
        """Handle an ACCEPT_SENDER_MSG; the first acceptable one is taken (3.3)."""
        late = self.on_time(now)
        if self._state is not SenderState.WAIT_FOR_RECEIVER or offer.key != self._key:
            return [*late, Refuse(Unheard.NOT_ASKED)]
        if self._under_way().kept.receiver not in (None, offer.agent):
            return [Refuse(Unheard.OTHER_RECEIVER)]
        self._move(SenderMove.ANSWER)
        self._offer = offer
        self._deadline = now + self._settings.t_wait4_s
        message = self._under_way()
        return [Approve(offer, message.quality, message.id)]

    def approved(self, now: float) -> Actions:
        """Note that ACCEPT_RECEIVER_MSG was sent. The receiver is recorded before data can be sent (4.2)."""
        if self._is_over(late := self.on_time(now)):
            return late
        self._move(SenderMove.APPROVED)
        message, offer = self._under_way(), self._taken()
        self._bound = message.kept
        if not message.is_certain or message.kept.receiver is not None:
            return [SendData(offer)]
        self._bound = replace(message.kept, receiver=offer.agent, first_whole_at=now)
        return [Keep(self._bound), SendData(offer)]

    def begun(self, now: float) -> Actions:
        """Note that the first octet of DATA_MSG is about to be sent, unless this call ends the attempt."""
        if self._is_over(late := self.on_time(now)):
            return late
        self._move(SenderMove.BEGUN)
        return []

    def sent(self, now: float) -> Actions:
        """Note that the last octet of DATA_MSG may have been sent."""
        if self._state is not SenderState.SENDING:
            return self._only_if_over()
        message = self._under_way()
        if not message.is_certain:
            return self._end(SenderMove.SENT_UNCERTAIN, Remove(Why.SENT), now)
        self._move(SenderMove.SENT_CERTAIN)  # also when it is late: the message *was* sent whole
        return self.on_time(now)

    def failed(self, now: float) -> Actions:
        """Handle a failed connection or Keep; the last octet of DATA_MSG has certainly not been sent.

        A certain message that was sent in part may still be answered: the deadline changes.
        """
        if self._is_over(late := self.on_time(now)):
            return late
        if self._state is SenderState.SENDING and self._under_way().is_certain:
            return self._broke(now)
        return self._in_vain(SenderMove.FAILED, now)

    def ended(self, message: EndTransmissionMsg, source: str, now: float) -> Actions:
        """Handle an END_TRANSMISSION_MSG (4.2), even a late one. Refuse leaves the port listening."""
        if self._state not in _LISTENING:
            return [*self.on_time(now), Refuse(Unheard.NOT_AWAITED)]
        under_way = self._under_way()
        if not under_way.is_certain:
            return [Refuse(Unheard.NOT_AWAITED)]
        if source != self._taken().source:
            return [Refuse(Unheard.FOREIGN_SOURCE)]
        if message.id != under_way.id:
            return [Refuse(Unheard.OTHER_ID)]
        if message.result is Result.SUCCESS:
            return self._end(SenderMove.SUCCESS, Remove(Why.CONFIRMED), now)
        return self._end(SenderMove.FAILURE, self._after_failure(self._kept(SenderMove.FAILURE), now), now)

    def _broke(self, now: float) -> Actions:
        """Wait for an answer: the receiver may have closed because it refuses the message (4.2)."""
        self._move(SenderMove.BROKEN)
        until = now + self._settings.broken_off_s
        self._deadline = until if self._deadline is None else min(self._deadline, until)
        return []

    def _in_vain(self, move: SenderMove, now: float) -> Actions:
        """End the attempt after a time-out or a failed connection."""
        why = _VAIN[self._state]
        if self._under_way().is_certain:
            return self._end(move, MoveToEnd(why, self._kept(move)), now)
        return self._end(move, Remove(why) if why is Why.CUT_SHORT else PutBack(why), now)

    def _kept(self, move: SenderMove) -> Kept:
        """Return what is kept with the message: its receiver, unless it was certainly not sent whole."""
        is_whole = self._state is SenderState.WAIT_FOR_CONFIRMATION
        may_be_whole = self._state is SenderState.SENDING and move is SenderMove.TIME_OUT
        return self._bound if is_whole or may_be_whole else self._under_way().kept

    def _after_failure(self, kept: Kept, now: float) -> MoveToEnd | Bury:
        """Decide after a FAILURE, which may also mean that the peer had the message before (4.2)."""
        settings, failures = self._settings, kept.failures + 1
        if failures >= settings.max_attempts:
            return Bury(Why.UNCONFIRMED, replace(kept, failures=failures))
        doublings = min(failures - 1, 63)  # more would not change the smaller of the two
        pause = min(settings.first_backoff_s * 2**doublings, settings.max_backoff_s)
        return MoveToEnd(Why.FAILURE, replace(kept, failures=failures, not_before=now + pause))

    def _end(self, move: SenderMove, fate: SenderAction, now: float) -> Actions:
        """End the attempt. After a failed one the next question follows T_WAIT1 or more after the last (4.1)."""
        self._move(move)
        self._message = self._offer = None
        self._deadline = self._asked_at + self._settings.t_wait1_s
        if now >= self._deadline or move in _GOOD:
            self._rested()
        return [CloseAll(is_timed_out=move is SenderMove.TIME_OUT), fate]

    def _rested(self) -> None:
        self._move(SenderMove.RESTED)
        self._deadline = None

    def _is_too_old(self, kept: Kept, now: float) -> bool:
        settings = self._settings
        if kept.first_whole_at is None:
            return False
        return now - kept.first_whole_at >= settings.dedupe_window_s - settings.hold_margin_s

    def _is_over(self, late: Actions) -> bool:
        """Return whether the attempt has ended, just now or before."""
        return bool(late) or self._message is None

    def _only_if_over(self) -> Actions:
        if self._message is not None:
            raise LocalError(f"sent while {self._state.value}")
        return []

    def _under_way(self) -> Outgoing:
        if self._message is None:
            raise LocalError("no message is under way")
        return self._message

    def _taken(self) -> Offer:
        if self._offer is None:
            raise LocalError("no answer was taken")
        return self._offer

    def _move(self, move: SenderMove) -> None:
        """Change the state. Raises LocalError for a move that the table lacks."""
        following = SENDER_TRANSITIONS[self._state].get(move)
        if following is None:
            raise LocalError(f"{move.name} while {self._state.value}")
        self._state = following
