"""A receiving agent's session with one sender, without I/O (rqp_cast.md 5)."""

from dataclasses import dataclass

from protos.rqp_cast.messages import AcceptReceiverMsg, DataMsg
from protos.rqp_cast.question import agent_of
from protos.rqp_cast.readers import Damaged, DataReader
from protos.rqp_cast.receiver_actions import (
    BuryReceived,
    Confirm,
    Free,
    Insert,
    Insertion,
    ReceiverAction,
)
from protos.rqp_cast.receiver_table import RECEIVER_TRANSITIONS, ReceiverMove, ReceiverState
from protos.rqp_cast.wire import ZERO_ID, Quality, Reason, Result
from protos.types import LocalError

Actions = list[ReceiverAction]

# Dead letters' reasons for uncertain messages that were not inserted: their senders keep none.
_LOST_WITHOUT = {
    Insertion.GONE: Reason.ZOMBIE.label,
    Insertion.FULL: "rejected_full",
    Insertion.REFUSED: "refused",
}
# Reasons of BuryReceived.
BURIED_AS = frozenset({*(reason.label for reason in Reason), *_LOST_WITHOUT.values()})


@dataclass(frozen=True, slots=True)
class ReceiverSettings:
    """Time limits and options of a session (2.2, 3, 5)."""

    t_wait2_s: float = 5.0  # for ACCEPT_RECEIVER_MSG
    t_wait3_s: float = 10.0  # for the whole DATA_MSG, from the approval
    max_message_bytes: int = 1 << 20  # larger ones are INJURED
    duplicate_result: Result = Result.FAILURE  # the answer to a duplicate (5.4)
    omit_address: bool = False  # TCP messages have no address (2.2)
    trust_address: bool = False  # the sender is the address in a message, not the connection's (2.2)


class ReceiverSession:
    """Decides what to do with one offered message; holds its body, but no sockets.

    It begins with the ACCEPT_SENDER_MSG: the queue is reserved, its ports are open for `source` only. Then `approved`,
    `receive`, `lost` and `inserted` report events. `now` is any clock in seconds that never runs backwards. A call that
    comes too late does what `on_time` would have done. After END nothing changes. Raises LocalError for steps out of
    order.
    """

    __slots__ = (
        "_agent",
        "_approval",
        "_data",
        "_deadline",
        "_key",
        "_record",
        "_settings",
        "_source",
        "_state",
    )

    def __init__(self, key: int, source: str, settings: ReceiverSettings, now: float) -> None:
        self._key = key
        self._source = source
        self._settings = settings
        self._state = ReceiverState.WAIT_FOR_APPROVAL
        self._approval: AcceptReceiverMsg | None = None
        self._agent = source
        self._data = DataReader(key, settings.max_message_bytes, settings.omit_address)
        self._record = b""  # whole, while the store is asked
        self._deadline: float | None = now + settings.t_wait2_s

    @property
    def state(self) -> ReceiverState:
        """The state; at END the session may be dropped, once its last actions have been carried out."""
        return self._state

    @property
    def excess(self) -> int:
        """Octets after the end of the message, or of a body too large: ignored (5.2)."""
        return self._data.excess

    @property
    def buffered(self) -> int:
        """Bytes held of an unfinished message."""
        return self._data.buffered

    def deadline(self) -> float | None:
        """Return when `on_time` is due; None while the store is asked, and at the end."""
        return self._deadline

    def on_time(self, now: float) -> Actions:
        """End the session if T_WAIT2 or T_WAIT3 is over (5.1, 5.2)."""
        if self._deadline is None or now < self._deadline:
            return []
        return self._cut(ReceiverMove.TIME_OUT, "timed_out")

    def approved(self, message: AcceptReceiverMsg, now: float) -> Actions:
        """Handle an ACCEPT_RECEIVER_MSG on accept_port; from now on data_port listens (3.2)."""
        if self._is_over(late := self.on_time(now)):
            return late
        self._move(ReceiverMove.APPROVED)
        self._approval = message
        self._agent = agent_of(message.address, self._source, self._settings.trust_address)
        self._deadline = now + self._settings.t_wait3_s
        return []

    def receive(self, data: bytes, now: float) -> Actions:
        """Handle octets on data_port."""
        late = self.on_time(now)
        if self._state is ReceiverState.WAIT_FOR_APPROVAL:
            raise LocalError("data before the approval")
        found = self._data.receive(data)
        match found:
            case DataMsg():
                self._move(ReceiverMove.WHOLE)
                self._deadline = None
                self._record = found.record
                return [Insert(found.record, self._id(), self._agent)]
            case Damaged():
                return self._damaged(found, ports_rest=False)
            case None:
                return late

    def lost(self, now: float) -> Actions:
        """Handle the end or failure of the connection, or one that brought no ACCEPT_RECEIVER_MSG."""
        if self._is_over(late := self.on_time(now)) or self._state is ReceiverState.INSERTING:
            return late
        return self._cut(ReceiverMove.LOST, "truncated")

    def inserted(self, outcome: Insertion) -> Actions:
        """Handle the outcome of an Insert; certain messages are confirmed (5.3 to 5.6)."""
        self._move(ReceiverMove.INSERTED)
        data = DataMsg(None, self._key, self._record).data
        is_buried = outcome is Insertion.GONE or (outcome in _LOST_WITHOUT and not self._is_certain())
        buried: Actions = [BuryReceived(_LOST_WITHOUT[outcome], data, outcome.value)] if is_buried else []
        self._record = b""
        return [*buried, Free(ports_rest=False), *self._confirm(self._result(outcome))]

    # -------------------------------------------------------------------------------------------------------------

    def _result(self, outcome: Insertion) -> Result | None:
        match outcome:
            case Insertion.STORED:
                return Result.SUCCESS
            case Insertion.DUPLICATE:
                return self._settings.duplicate_result
            case Insertion.UNKNOWN:
                return None  # neither answer may be true
            case Insertion.CLASH | Insertion.GONE | Insertion.FULL | Insertion.REFUSED:
                return Result.FAILURE

    def _cut(self, move: ReceiverMove, detail: str) -> Actions:
        """End because of time or connection, before the DATA_MSG or in its middle."""
        is_time_out = move is ReceiverMove.TIME_OUT
        damaged = self._data.cut(detail)
        if damaged is not None:
            return self._damaged(damaged, ports_rest=is_time_out)
        self._move(move)
        self._deadline = None
        return [Free(ports_rest=is_time_out)]

    def _damaged(self, damaged: Damaged, ports_rest: bool) -> Actions:
        self._move(ReceiverMove.DAMAGED)
        self._deadline = None
        buried = BuryReceived(damaged.reason.label, damaged.data, damaged.detail)
        return [buried, Free(ports_rest), *self._confirm(Result.FAILURE)]

    def _confirm(self, result: Result | None) -> Actions:
        """Confirm a certain message (5.6), after its reservation is free for the next question."""
        approval = self._approval
        if result is None or approval is None or not self._is_certain():
            return []
        return [Confirm(approval.endtransmission_port, approval.id, result)]

    def _is_certain(self) -> bool:
        return self._approval is not None and self._approval.msg_type is Quality.HIGH_QUALITY

    def _id(self) -> int:
        return self._approval.id if self._approval is not None and self._is_certain() else ZERO_ID

    def _is_over(self, late: Actions) -> bool:
        return bool(late) or self._state is ReceiverState.END

    def _move(self, move: ReceiverMove) -> None:
        """Change the state. Raises LocalError for a move that the table lacks."""
        following = RECEIVER_TRANSITIONS[self._state].get(move)
        if following is None:
            raise LocalError(f"{move.name} while {self._state.value}")
        self._state = following
