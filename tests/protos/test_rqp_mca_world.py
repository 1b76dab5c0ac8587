"""The sending MCA among peers that answer, stay silent, break and misbehave, in any order (rqp_mca.md 3).

The test does the work of a service: a queue of messages, and a connection for each peer that is asked. A failure prints
how to repeat it.
"""

from collections import Counter, deque
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from protos.rqp_mca import (
    TRANSITIONS,
    AskAvailability,
    AvailableConfirm,
    Close,
    Confirm,
    DataConfirm,
    MessageType,
    Move,
    QueueConfirm,
    Remove,
    ReportFailure,
    RequestQueue,
    SendData,
    Sender,
    SenderSettings,
    State,
    ToDeadLetters,
)
from tests.protos.rqp_mca_senders import QUEUE, RELIABLE, UNRELIABLE

PEERS = ["a", "b", "c"]
LATEST = SenderSettings().max_pause_s  # no wait is longer
# Actions belong to moves of the table: the number of these moves is that of these actions.
MOVES_OF: dict[type, set[Move]] = {
    RequestQueue: {Move.ASKED_ENOUGH, Move.CANDIDATE_FAILED},
    SendData: {Move.SENT_RELIABLE, Move.SENT_UNRELIABLE},
    Remove: {Move.SENT_UNRELIABLE, Move.CONFIRMED_SOME, Move.CONFIRMED_ALL},
    ToDeadLetters: {Move.NOBODY_UNRELIABLE},
    ReportFailure: {Move.NOBODY_RELIABLE, Move.FAILED, Move.FAILED_AGAIN},
}
ASKING = {Move.ASKED, Move.ASKED_NEWCOMER, Move.FAILED}  # as many as there are peers

DISTURBANCES = ["peers", "lie", "early", "too much", "lose", "lose", "withdraw", "expire", "abandon"]

peers = st.sampled_from(PEERS)
windows = st.sampled_from([1, 1, 3])


@dataclass
class Message:
    """A message that was put, by its number, with its outcomes."""

    number: int
    kind: MessageType


@dataclass
class Link:
    """A connection: messages on their way to the peer, and requests that the peer has not answered."""

    asked: bool = False  # for availability, unanswered
    requested: bool = False  # to reserve, unanswered
    sent: deque[int] = field(default_factory=deque)  # RELIABLE messages, unconfirmed


class Watched(Sender):
    """A sender that records its moves."""

    def __init__(self) -> None:
        super().__init__(QUEUE, SenderSettings())
        self.moves: list[Move] = []

    def _move(self, move: Move) -> None:
        assert move in TRANSITIONS[self.state]
        super()._move(move)
        self.moves.append(move)


class World(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.windows: dict[str, int] = {}
        self.sender = Watched()
        self.line: deque[Message] = deque()
        self.links: dict[str, Link] = {}
        self.put_so_far = 0
        self.confirmed: set[int] = set()  # by the peer, on the connection that they were sent on
        self.departures: Counter[int] = Counter()  # how often a message left the queue
        self.last_number = -1  # of those that left it

    # --- work of the service

    def carry_out(self, actions: list) -> None:
        self.check_moves(actions)
        for action in actions:
            match action:
                case AskAvailability(peer):
                    assert peer in self.windows
                    assert peer not in self.links
                    self.links[peer] = Link(asked=True)
                case RequestQueue(peer):
                    link = self.links[peer]
                    assert not any(other.requested or other.sent for other in self.links.values())
                    assert not link.asked
                    link.requested = True
                case SendData(peer, start, count):
                    self.send(peer, start, count)
                case Remove(count):
                    for _ in range(count):
                        message = self.leave()
                        assert message.kind is UNRELIABLE or message.number in self.confirmed
                case ToDeadLetters(_):
                    assert self.leave().kind is UNRELIABLE
                case ReportFailure(_, retry_at, _):
                    assert self.line[0].kind is RELIABLE
                    assert self.now <= retry_at <= self.now + LATEST
                case Close(peer):
                    del self.links[peer]

    def send(self, peer: str, start: int, count: int) -> None:
        link = self.links[peer]
        assert set(self.links) == {peer}  # 3.3: no other peer is asked or sent to meanwhile
        assert not link.asked
        assert not link.requested
        messages = [self.line[place] for place in range(start, start + count)]
        assert len({message.kind for message in messages}) == 1
        if messages[0].kind is RELIABLE:
            assert start == len(link.sent)  # behind those in flight
            assert peer in self.windows
            link.sent.extend(message.number for message in messages)
            assert len(link.sent) <= self.windows[peer]
        else:
            assert not link.sent

    def leave(self) -> Message:
        message = self.line.popleft()
        assert message.number > self.last_number  # in the order of the queue, none twice
        self.last_number = message.number
        self.departures[message.number] += 1
        return message

    def check_moves(self, actions: list) -> None:
        moves, self.sender.moves = self.sender.moves, []
        for action, of in MOVES_OF.items():
            made = [move for move in moves if move in of]
            assert len(made) == sum(isinstance(one, action) for one in actions), (action, moves)
        assert any(move in ASKING for move in moves) or AskAvailability not in map(type, actions)

    # --- events

    @rule(kind=st.sampled_from(MessageType), count=st.integers(1, 4))
    def put(self, kind: MessageType, count: int) -> None:
        self.line.extend(Message(self.put_so_far + place, kind) for place in range(count))
        self.put_so_far += count
        self.carry_out(self.sender.put(kind, count, self.now))

    @initialize(windows=st.fixed_dictionaries(dict.fromkeys(PEERS, windows)))
    def know_peers(self, windows: dict[str, int]) -> None:
        self.change_peers(windows)

    def change_peers(self, windows: dict[str, int]) -> None:
        self.windows = windows
        self.carry_out(self.sender.peers_changed(windows, self.now))

    @precondition(lambda self: self.links)
    @rule(times=st.integers(1, 8), data=st.data())
    def answer(self, times: int, data: st.DataObject) -> None:
        for _ in range(times):
            if self.links:
                self.answer_once(data)

    def answer_once(self, data: st.DataObject) -> None:
        """Let a peer do its next request; of messages in flight it confirms some."""
        peer = data.draw(st.sampled_from(sorted(self.links)))
        link = self.links[peer]
        confirm: Confirm
        if link.asked:
            link.asked, confirm = False, AvailableConfirm(QUEUE)
        elif link.requested:
            link.requested, confirm = False, QueueConfirm(QUEUE)
        elif link.sent:
            confirm = DataConfirm(data.draw(st.integers(1, len(link.sent))))
            self.confirmed.update(link.sent.popleft() for _ in range(confirm.count))
        else:
            return
        self.carry_out(self.sender.received(peer, confirm, self.now))

    @rule(data=st.data())
    def disturb(self, data: st.DataObject) -> None:
        """Cause one of the disturbances: they share a rule, so that most conversations come to their end."""
        peer = data.draw(peers)
        match data.draw(st.sampled_from(DISTURBANCES)):
            case "peers":
                self.change_peers(data.draw(st.dictionaries(peers, windows)))
            case "lie":
                self.lie(peer, data)
            case "early":
                self.confirm_early(data.draw(st.integers(0, 3)))
            case "too much":
                self.confirm_too_much(data.draw(st.integers(1, 3)))
            case "lose":
                self.lose(peer)
            case "withdraw":
                self.withdraw()
            case "expire":
                self.expire(data.draw(st.integers(1, 3)))
            case "abandon":
                self.abandon()

    def lie(self, peer: str, data: st.DataObject) -> None:
        """Send an answer without a request, or on a closed connection: any but a valid confirm."""
        link = self.links.get(peer, Link())
        lies: list[Confirm] = [AvailableConfirm(QUEUE + 1), QueueConfirm(QUEUE + 1)]
        lies += [] if link.asked else [AvailableConfirm(QUEUE)]
        lies += [] if link.requested else [QueueConfirm(QUEUE)]
        lies += [] if link.sent else [DataConfirm(1)]
        actions = self.sender.received(peer, data.draw(st.sampled_from(lies)), self.now)
        assert actions[:1] == ([Close(peer)] if peer in self.links else [])
        self.carry_out(actions)

    def confirm_early(self, awaited: int) -> None:
        """Confirm one message more than were in flight when the confirms came; some were sent since."""
        if awaited < self.sender.unconfirmed:
            (peer,) = self.links
            self.confirmed.update(list(self.links[peer].sent)[:awaited])
            actions = self.sender.received(peer, DataConfirm(awaited + 1), self.now, awaited)
            assert actions[: 2 if awaited else 1] == [*[Remove(awaited)] * bool(awaited), Close(peer)]
            self.carry_out(actions)

    def confirm_too_much(self, more: int) -> None:
        if not self.sender.unconfirmed:
            return
        (peer,) = self.links
        sent = self.links[peer].sent
        self.confirmed.update(sent)
        actions = self.sender.received(peer, DataConfirm(len(sent) + more), self.now)
        assert actions[:2] == [Remove(len(sent)), Close(peer)]
        self.carry_out(actions)

    def lose(self, peer: str) -> None:
        is_there = self.links.pop(peer, None) is not None
        actions = self.sender.lost(peer, self.now)
        assert is_there or actions == []
        self.carry_out(actions)

    @rule()
    def wait_until_due(self) -> None:
        due = self.sender.deadline()
        if due is not None:
            self.now = due
            self.carry_out(self.sender.on_time(self.now))
            assert self.sender.deadline() != due  # it has moved

    @rule(seconds=st.sampled_from([0.0, 0.5, 3.0]))
    def wait(self, seconds: float) -> None:
        due = self.sender.deadline()
        self.now += seconds
        actions = self.sender.on_time(self.now)
        assert actions == [] or (due is not None and due <= self.now)
        self.carry_out(actions)

    def withdraw(self) -> None:
        self.carry_out(self.sender.withdraw())
        while len(self.line) > self.sender.unconfirmed:
            self.departures[self.line.pop().number] += 1

    def expire(self, count: int) -> None:
        out = self.sender.unconfirmed
        count = min(count, len(self.line) - out)
        if count:
            self.carry_out(self.sender.expire(count))
            for _ in range(count):
                self.departures[self.line[out].number] += 1
                del self.line[out]

    def abandon(self) -> None:
        self.carry_out(self.sender.abandon())
        self.departures.update(message.number for message in self.line)
        self.line.clear()
        assert self.sender.state is State.IDLE

    # --- invariants

    @invariant()
    def no_message_is_lost_or_leaves_twice(self) -> None:
        assert self.sender.waiting == len(self.line)
        assert set(self.departures.values()) <= {1}
        here = {message.number for message in self.line}
        assert here.isdisjoint(self.departures)
        assert len(here) + len(self.departures) == self.put_so_far

    @invariant()
    def it_waits_for_what_is_awaited_and_never_for_the_past(self) -> None:
        due = self.sender.deadline()
        if self.sender.state is State.IDLE:
            assert due is None
            assert not self.line  # an idle sender has no messages left
        else:
            assert due is not None
            assert self.now < due <= self.now + LATEST

    @invariant()
    def one_thing_is_awaited(self) -> None:
        links = self.links.values()
        out = [link for link in links if link.sent]
        requested = [link for link in links if link.requested]
        assert len(out) <= 1
        assert sum(len(link.sent) for link in out) == self.sender.unconfirmed
        match self.sender.state:
            case State.IDLE:
                assert set(self.links) == ({self.sender.receiver} - {None})
            case State.AWAITING_QUEUE_REQUEST:
                assert (requested, out) == ([], [])
            case State.AWAITING_QUEUE:
                assert (len(requested), out) == (1, [])
            case State.AWAITING_MESSAGE:
                assert set(self.links) == {self.sender.receiver}
                assert out
            case State.STOPPED:
                assert not self.links


World.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestWorld = World.TestCase
