"""A sending MCA's machine for one destination, without I/O: events in, actions out (rqp_mca.md 3)."""

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
from protos.rqp_mca.pending import Pending
from protos.rqp_mca.search import Search
from protos.rqp_mca.times import FailureRow, SenderSettings
from protos.rqp_mca.transitions import Move, State
from protos.rqp_mca.wire import MessageType
from protos.types import LocalError


class Sender(Machine):
    """Decides which receivers to ask, what to send, and when a message is done; holds no bodies and no connections.

    Its user keeps the messages for `queue_id` in the order in which they were `put`, removes them as `Remove` and
    `ToDeadLetters` say, and keeps a connection for each peer that was asked, until `Close` or its end. Each event comes
    with `now`, a clock in seconds that never runs backwards, and returns actions to carry out in order before the next
    call. Confirms and losses of unknown connections are ignored.
    """

    __slots__ = (
        "_peers",
        "_pending",
        "_row",
        "_search",
        "_settings",
        "queue_id",
        "receiver",
        "unconfirmed",
    )

    def __init__(self, queue_id: int, settings: SenderSettings) -> None:
        super().__init__()
        self.queue_id = queue_id  # of the destination, u32
        self.receiver: Peer | None = None  # has the queue, reserved for us (3.4)
        self.unconfirmed = 0  # messages that are out, the first of the pending ones
        self._settings = settings
        self._row = FailureRow(settings)
        self._peers: dict[Peer, int] = {}  # all receiving MCAs, and the window of each
        self._search = Search()
        self._pending = Pending()

    @property
    def waiting(self) -> int:
        """Pending messages, those that are out included."""
        return self._pending.size

    @property
    def failures(self) -> int:
        """Failures in a row: 0 once a message was delivered."""
        return self._row.count

    def put(self, kind: MessageType, count: int, now: float) -> list[Action]:
        """Add `count` messages. Raises LocalError if that is less than one."""
        if count < 1:
            raise LocalError(f"{count} messages cannot be put")
        self._pending.append(kind, count)
        return self._go_on(now)

    def withdraw(self) -> list[Action]:
        """Take back all messages that are not out; the `unconfirmed` go on."""
        self._pending.keep(self.unconfirmed)
        if not self.unconfirmed and self.state is not State.IDLE:
            self._close(self._search.end())
            self._await(Move.WITHDRAWN, None)
        return self._taken()

    def expire(self, count: int) -> list[Action]:
        """Take back the first `count` messages that are not out; the others go on.

        Raises LocalError if there are fewer.
        """
        waiting = self._pending.size - self.unconfirmed
        if not 1 <= count <= waiting:
            raise LocalError(f"{count} of {waiting} messages cannot be taken back")
        if count == waiting:
            return self.withdraw()
        self._pending.take_out(self.unconfirmed, count)
        return self._taken()

    def abandon(self) -> list[Action]:
        """Take back all messages, also those that are out; no confirm counts any more."""
        if self.unconfirmed:
            self.unconfirmed = 0
            self._forget()
        return self.withdraw()

    def peers_changed(self, peers: Mapping[Peer, int], now: float) -> list[Action]:
        """Set the receiving MCAs, and how many unconfirmed messages each may be sent: 1, or its `window` (3.3).

        Raises LocalError for a window below 1.
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
        """Handle a confirm of `peer`; an unexpected one closes its connection (3.3).

        Args:
            peer: Who sent it.
            confirm: An event of its `SenderConnection`.
            now: Seconds.
            awaited: How many messages were out when this came, if more may have been sent since; it confirms no others.
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
        """Handle the loss of the connection to `peer`, or the failure to connect (3.3)."""
        self._gone(peer, failure, now)
        return self._go_on(now)

    def on_time(self, now: float) -> list[Action]:
        """Handle a time-out (3.2), or the end of a pause (3.1)."""
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

    def _ask_all(self, move: Move, now: float) -> None:
        self._await(move, now + self._settings.availability_timeout_s)
        self._ask(self._peers)

    def _ask(self, peers: Iterable[Peer]) -> None:
        self._search.ask(peers)
        self._do(*map(AskAvailability, peers))

    def _welcome(self, came: list[Peer]) -> None:
        """Ask new peers at once, as the known ones do not have the queue (3.4)."""
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
        """Request the queue once all have answered; if none has it, the time-out is waited for (3.5)."""
        if self._search.is_answered():
            self._request(Move.ASKED_ENOUGH, now)

    def _asked_long_enough(self, now: float) -> None:
        self._close(self._search.end_asking())
        if self._search.candidates:
            self._request(Move.ASKED_ENOUGH, now)
        else:
            self._no_candidate(Failure.NO_RECEIVER, now)

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
            self._no_candidate(Failure.NOT_RESERVED, now)

    def _reserved(self) -> None:
        self.receiver, *others = self._search.end()
        self._close(others)
        is_reliable = self._pending.kind is MessageType.RELIABLE
        self._await(Move.RESERVED_RELIABLE if is_reliable else Move.RESERVED_UNRELIABLE, None)

    def _no_candidate(self, failure: Failure, now: float) -> None:
        if self._pending.kind is MessageType.RELIABLE:
            self._row.count += 1
            self._stop(Move.NOBODY_RELIABLE, failure, 0, now)
        else:
            self._await(Move.NOBODY_UNRELIABLE, None)
            self._pending.remove(1)
            self._do(ToDeadLetters(failure))

    def _go_on(self, now: float) -> list[Action]:
        """Do what needs no event: send when idle, or fill the window. Return all actions."""
        while self.state is State.IDLE and self._pending.size:
            if self.receiver is None:
                self._ask_all(Move.ASKED, now)
            elif self._pending.kind is MessageType.UNRELIABLE:
                self._send_unreliable(self.receiver)
            else:
                self._send_reliable(self.receiver, now)
        if self.state is State.AWAITING_MESSAGE and self.receiver is not None:
            self._send_reliable(self.receiver, now)
        return self._taken()

    def _send_reliable(self, peer: Peer, now: float) -> None:
        """Send as many as there are and the window allows: none to a peer that the list has dropped."""
        count = min(self._peers.get(peer, 0), self._pending.run) - self.unconfirmed
        if count > 0:
            due = self._due if self.unconfirmed else now + self._settings.data_timeout_s
            self._await(Move.SENT_RELIABLE, due)
            self._do(SendData(peer, self.unconfirmed, count))
            self.unconfirmed += count

    def _send_unreliable(self, peer: Peer) -> None:
        count = self._pending.run
        self._move(Move.SENT_UNRELIABLE)
        self._do(SendData(peer, 0, count))
        self._remove(count)

    def _confirmed(self, peer: Peer, count: int, out: int, now: float) -> None:
        """Handle confirms. out: how many messages they can be for."""
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
        """Remove delivered messages."""
        self._pending.remove(count)
        self._do(Remove(count))
        self._row.end()

    def _drop(self, peer: Peer, now: float) -> None:
        """Close the connection of a peer that left the list (3.4), unless messages are out to it."""
        if not (peer == self.receiver and self.unconfirmed):
            self._break_off(peer, Failure.CONNECTION_LOST, now)

    def _break_off(self, peer: Peer, failure: Failure, now: float) -> None:
        """Close the connection, if there is one, and go on as if it had broken."""
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
        """Ask the peer last, so that it does not keep others from being asked (3.5); not at all if it left."""
        if peer in self._peers:
            self._search.has_failed(peer)

    def _fail(self, failure: Failure, now: float) -> None:
        """Unsend what was out: ask all peers at once the first time, later after a pause (3.1)."""
        unsent, self.unconfirmed = self.unconfirmed, 0
        self._row.count += 1
        if self._row.count > 1:
            self._stop(Move.FAILED_AGAIN, failure, unsent, now)
            return
        self._do(ReportFailure(failure, now, unsent))
        self._ask_all(Move.FAILED, now)

    def _stop(self, move: Move, failure: Failure, unsent: int, now: float) -> None:
        """Report the failure, and try again later (3.1)."""
        retry_at = now + self._row.pause_s()
        self._await(move, retry_at)
        self._do(ReportFailure(failure, retry_at, unsent))

    def _forget(self) -> None:
        if self.receiver is not None:
            self._do(Close(self.receiver))
            self.receiver = None
