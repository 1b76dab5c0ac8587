"""A sending MCA's machine for one destination, without I/O: what happens in, what is to be done out (rqp_mca.md 3)."""

from collections.abc import Iterable, Mapping

from protos.rqp_mca.actions import (
    Action,
    AskAvailability,
    Close,
    Failure,
    Peer,
    Remove,
    ReportFailure,
    RequestQueue,
    SendData,
    ToDeadLetters,
)
from protos.rqp_mca.events import AvailableConfirm, Confirm, DataConfirm, QueueConfirm
from protos.rqp_mca.machine import Machine
from protos.rqp_mca.pending import Line
from protos.rqp_mca.search import Search
from protos.rqp_mca.times import FailureRow, SenderSettings
from protos.rqp_mca.transitions import Move, State
from protos.rqp_mca.wire import MessageType
from protos.types import LocalError


class Sender(Machine):
    """Decides when to ask whom, what to send, and when a message is done; holds no bodies and no connections.

    Its user keeps the line of messages for `queue_id`, as many and in such an order as were `put`; takes them off as
    `Remove` and `ToDeadLetters` say; and keeps a connection for each peer that was asked, until `Close` or its end.
    Whatever happens is told with `now`, a clock in seconds that never runs backwards, and answered by actions, to be
    carried out in order before the next call. Confirms and losses of connections that are not there are ignored.
    """

    __slots__ = (
        "_line",
        "_peers",
        "_row",
        "_search",
        "_settings",
        "queue_id",
        "receiver",
        "unconfirmed",
    )

    def __init__(self, queue_id: int, settings: SenderSettings) -> None:
        super().__init__()
        self.queue_id = queue_id
        self.receiver: Peer | None = None  # known to have the queue, reserved for us (3.4)
        self.unconfirmed = 0  # messages that are out; they stand at the front of the line
        self._settings = settings
        self._row = FailureRow(settings)
        self._peers: dict[Peer, int] = {}  # all receiving MCAs, and the window of each
        self._search = Search()
        self._line = Line()

    @property
    def waiting(self) -> int:
        """Messages in the line, those that are out among them."""
        return self._line.size

    @property
    def failures(self) -> int:
        """In a row: 0 once a message has got through."""
        return self._row.count

    # what happens

    def put(self, kind: MessageType, count: int, now: float) -> list[Action]:
        """`count` more messages at the end of the line. LocalError if that is less than one."""
        if count < 1:
            raise LocalError(f"{count} messages cannot be put")
        self._line.append(kind, count)
        return self._go_on(now)

    def withdraw(self) -> list[Action]:
        """What is not out is taken back: the line ends behind the `unconfirmed`, which go on."""
        self._line.keep(self.unconfirmed)
        if not self.unconfirmed and self.state is not State.IDLE:
            self._close(self._search.end())
            self._await(Move.WITHDRAWN, None)
        return self._taken()

    def expire(self, count: int) -> list[Action]:
        """The first `count` of those that are not out are taken back; for the others everything goes on.

        LocalError if there are not so many.
        """
        waiting = self._line.size - self.unconfirmed
        if not 1 <= count <= waiting:
            raise LocalError(f"{count} of {waiting} messages cannot be taken back")
        if count == waiting:
            return self.withdraw()
        self._line.take_out(self.unconfirmed, count)
        return self._taken()

    def abandon(self) -> list[Action]:
        """Everything is taken back, also what is out: the line is empty, and no confirm counts any more."""
        if self.unconfirmed:
            self.unconfirmed = 0
            self._forget()
        return self.withdraw()

    def peers_changed(self, peers: Mapping[Peer, int], now: float) -> list[Action]:
        """The list of receiving MCAs, and how many unconfirmed messages each may be sent: 1, or its `window` (3.3).

        LocalError for a window below 1.
        """
        if any(window < 1 for window in peers.values()):
            raise LocalError("a window is 1 or more")
        came = [peer for peer in peers if peer not in self._peers]
        left = [peer for peer in self._peers if peer not in peers]
        self._peers = dict(peers)
        if came:
            self._welcome(came)
        for peer in left:
            self._search.forgive(peer)
            self._drop(peer, now)
        return self._go_on(now)

    def received(self, peer: Peer, confirm: Confirm, now: float, awaited: int | None = None) -> list[Action]:
        """`peer` has confirmed something; what is not awaited from it closes its connection (3.3).

        awaited: how many messages were out when this came, if some may have been sent since; it confirms no others.
        """
        match confirm:
            case AvailableConfirm(self.queue_id) if peer in self._search.asked:
                self._available(peer, now)
            case QueueConfirm(self.queue_id) if self._is_requested(peer):
                self._reserved()
            case DataConfirm(count) if peer == self.receiver and self.unconfirmed:
                out = self.unconfirmed if awaited is None else min(awaited, self.unconfirmed)
                self._confirmed(peer, count, out, now)
            case _:
                self._break_off(peer, Failure.UNEXPECTED_CONFIRM, now)
        return self._go_on(now)

    def lost(self, peer: Peer, now: float, failure: Failure = Failure.CONNECTION_LOST) -> list[Action]:
        """The connection to `peer` has gone, or could not be made: what was awaited on it will not come (3.3)."""
        self._gone(peer, failure, now)
        return self._go_on(now)

    def on_time(self, now: float) -> list[Action]:
        """What was awaited has not come in time (3.2), or a pause is over (3.1)."""
        if self._due is None or now < self._due:
            return []
        match self.state:
            case State.AWAITING_QUEUE_REQUEST:
                self._asked_long_enough(now)
            case State.AWAITING_QUEUE:
                self._break_off(self._search.candidates[0], Failure.NOT_RESERVED, now)
            case State.AWAITING_MESSAGE if self.receiver is not None:
                self._break_off(self.receiver, Failure.DATA_TIMEOUT, now)
            case State.STOPPED:
                self._await(Move.PAUSED_ENOUGH, None)
        return self._go_on(now)

    # who has the queue

    def _ask_all(self, move: Move, now: float) -> None:
        self._await(move, now + self._settings.availability_timeout_s)
        self._ask(self._peers)

    def _ask(self, peers: Iterable[Peer]) -> None:
        self._search.ask(peers)
        self._do(*map(AskAvailability, peers))

    def _welcome(self, came: list[Peer]) -> None:
        """Whoever is new may have the queue: there is no use in waiting for those who do not (3.4)."""
        if self.state is State.AWAITING_QUEUE_REQUEST:
            self._move(Move.ASKED_NEWCOMER)
            self._ask(came)
        elif self.state is State.STOPPED:
            self._await(Move.PAUSED_ENOUGH, None)

    def _available(self, peer: Peer, now: float) -> None:
        self._search.answer(peer)
        self._move(Move.AVAILABLE)
        self._request_if_answered(now)

    def _request_if_answered(self, now: float) -> None:
        """If nobody has the queue, the time is waited for all the same (3.5)."""
        if self._search.is_answered():
            self._request(Move.ASKED_ENOUGH, now)

    def _asked_long_enough(self, now: float) -> None:
        self._close(self._search.end_asking())
        if self._search.candidates:
            self._request(Move.ASKED_ENOUGH, now)
        else:
            self._nobody(Failure.NO_RECEIVER, now)

    def _request(self, move: Move, now: float) -> None:
        self._await(move, now + self._settings.request_timeout_s)
        self._do(RequestQueue(self._search.candidates[0]))

    def _is_requested(self, peer: Peer) -> bool:
        return self.state is State.AWAITING_QUEUE and peer == self._search.candidates[0]

    def _next_candidate(self, now: float) -> None:
        self._has_failed(self._search.candidates.pop(0))
        if self._search.candidates:
            self._request(Move.CANDIDATE_FAILED, now)
        else:
            self._nobody(Failure.NOT_RESERVED, now)

    def _reserved(self) -> None:
        self.receiver, *others = self._search.end()
        self._close(others)
        is_reliable = self._line.kind is MessageType.RELIABLE
        self._await(Move.RESERVED_RELIABLE if is_reliable else Move.RESERVED_UNRELIABLE, None)

    def _nobody(self, failure: Failure, now: float) -> None:
        if self._line.kind is MessageType.RELIABLE:
            self._row.count += 1
            self._stop(Move.NOBODY_RELIABLE, failure, 0, now)
        else:
            self._await(Move.NOBODY_UNRELIABLE, None)
            self._line.remove(1)
            self._do(ToDeadLetters(failure))

    # messages

    def _go_on(self, now: float) -> list[Action]:
        """What needs no news from outside: idle with a message, or a window with room. All that is to be done."""
        while self.state is State.IDLE and self._line.size:
            if self.receiver is None:
                self._ask_all(Move.ASKED, now)
            elif self._line.kind is MessageType.UNRELIABLE:
                self._send_unreliable(self.receiver)
            else:
                self._send_reliable(self.receiver, now)
        if self.state is State.AWAITING_MESSAGE and self.receiver is not None:
            self._send_reliable(self.receiver, now)
        return self._taken()

    def _send_reliable(self, peer: Peer, now: float) -> None:
        """As many as there are, and the window allows: none to a peer that the list has dropped."""
        count = min(self._peers.get(peer, 0), self._line.run) - self.unconfirmed
        if count > 0:
            due = self._due if self.unconfirmed else now + self._settings.data_timeout_s
            self._await(Move.SENT_RELIABLE, due)
            self._do(SendData(peer, self.unconfirmed, count))
            self.unconfirmed += count

    def _send_unreliable(self, peer: Peer) -> None:
        count = self._line.run
        self._move(Move.SENT_UNRELIABLE)
        self._do(SendData(peer, 0, count))
        self._remove(count)

    def _confirmed(self, peer: Peer, count: int, out: int, now: float) -> None:
        """out: how many it can have been sent for."""
        mine = min(count, out)
        if mine:
            self.unconfirmed -= mine
            self._search.forgive(peer)
            self._remove(mine)
            self._confirm_awaited(now)
        if count > mine and self.unconfirmed:  # before its data was sent
            self._break_off(peer, Failure.UNEXPECTED_CONFIRM, now)
        elif count > mine or (not self.unconfirmed and peer not in self._peers):  # 3.3, 3.4
            self._forget()

    def _confirm_awaited(self, now: float) -> None:
        if self.unconfirmed:
            self._await(Move.CONFIRMED_SOME, now + self._settings.data_timeout_s)
        else:
            self._await(Move.CONFIRMED_ALL, None)

    def _remove(self, count: int) -> None:
        """They have got through."""
        self._line.remove(count)
        self._do(Remove(count))
        self._row.end()

    # what goes wrong

    def _drop(self, peer: Peer, now: float) -> None:
        """The list has it no more (3.4); what is out to it may still be confirmed."""
        if not (peer == self.receiver and self.unconfirmed):
            self._break_off(peer, Failure.CONNECTION_LOST, now)

    def _break_off(self, peer: Peer, failure: Failure, now: float) -> None:
        """Close its connection, if there is one, and go on as if it had broken."""
        if peer in self._search or peer == self.receiver:
            self._do(Close(peer))
            self._gone(peer, failure, now)

    def _gone(self, peer: Peer, failure: Failure, now: float) -> None:
        if peer == self.receiver:
            self.receiver = None
            if self.unconfirmed:
                self._has_failed(peer)
                self._fail(failure, now)
        elif self._is_requested(peer):
            self._next_candidate(now)
        elif peer in self._search:
            self._search.remove(peer)
            self._move(Move.PEER_GONE)
            if self.state is State.AWAITING_QUEUE_REQUEST:
                self._request_if_answered(now)

    def _has_failed(self, peer: Peer) -> None:
        """It is asked last, so that it keeps nobody else from being asked (3.5); who has left is not asked at all."""
        if peer in self._peers:
            self._search.has_failed(peer)

    def _fail(self, failure: Failure, now: float) -> None:
        """What was out is unsent. The first time everybody is asked at once, then after a pause (3.1)."""
        unsent, self.unconfirmed = self.unconfirmed, 0
        self._row.count += 1
        if self._row.count > 1:
            self._stop(Move.FAILED_AGAIN, failure, unsent, now)
            return
        self._do(ReportFailure(failure, now, unsent))
        self._ask_all(Move.FAILED, now)

    def _stop(self, move: Move, failure: Failure, unsent: int, now: float) -> None:
        """Report, and try again later (3.1)."""
        retry_at = now + self._row.pause_s()
        self._await(move, retry_at)
        self._do(ReportFailure(failure, retry_at, unsent))

    def _forget(self) -> None:
        if self.receiver is not None:
            self._do(Close(self.receiver))
            self.receiver = None
