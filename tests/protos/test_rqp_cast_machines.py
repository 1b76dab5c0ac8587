"""Random events in any order (rqp_cast.md 4, 5). A failure prints how to repeat it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from protos.rqp_cast import (
    Approve,
    Ask,
    Bury,
    BuryReceived,
    CloseAll,
    Confirm,
    EndTransmissionMsg,
    Free,
    Hold,
    Insert,
    Insertion,
    Keep,
    Kept,
    MoveToEnd,
    Offer,
    Outgoing,
    PutBack,
    Quality,
    ReceiverSession,
    ReceiverSettings,
    ReceiverState,
    Refuse,
    Remove,
    Result,
    SendData,
    Sender,
    SenderAction,
    SenderSettings,
    SenderState,
    Why,
)
from protos.types import LocalError
from tests.protos.rqp_cast_samples import HIGH, KEY, LOW, OTHER, RECEIVER, SENDER, data_msg

FATES = Remove | PutBack | MoveToEnd | Bury | Hold
places = st.sampled_from([RECEIVER, OTHER])
pauses = st.sampled_from([0.0, 0.1, 1.0, 2.0, 14.0, 60.0, 12 * 3600.0])


class AnySender(RuleBasedStateMachine):
    """One key's sender with any event at any time; its actions are compared with a simple model."""

    def __init__(self) -> None:
        super().__init__()
        self.sender = Sender(KEY, SenderSettings(max_attempts=3))
        self.now = 0.0
        self.message: Outgoing | None = None  # in flight: without an outcome
        self.taken: Offer | None = None
        self.kept = Kept()  # the note that a crash would leave with the message
        self.has_begun = self.was_whole = False
        self.next_id = 1
        self.waiting: list[Outgoing] = []

    # Events

    @rule(pause=pauses)
    def time_passes(self, pause: float) -> None:
        self.now += pause
        self.check(self.sender.on_time(self.now))
        due = self.sender.deadline()
        assert due is None or due > self.now  # no busy loop

    @rule(pause=pauses)
    def time_passes_without_on_time(self, pause: float) -> None:
        self.now += pause

    @precondition(lambda self: self.message is None)
    @rule(quality=st.sampled_from(Quality), old=st.booleans())
    def a_message(self, quality: Quality, old: bool) -> None:
        if old and self.waiting:
            message = self.waiting.pop(0)
            self.now = max(self.now, message.kept.not_before or 0.0)
        else:
            self.next_id += 1
            message = Outgoing(quality, self.next_id if quality is Quality.HIGH_QUALITY else 0)
        due = self.sender.deadline()
        if due is not None and self.now < due:
            with pytest.raises(LocalError):
                self.sender.send(message, self.now)
            if message.is_certain:
                self.waiting.append(message)
            return
        self.message, self.kept, self.taken = message, message.kept, None
        self.has_begun = self.was_whole = False
        self.check(self.sender.send(message, self.now))

    @rule(agent=places, key=st.sampled_from([KEY, KEY, KEY + 1]))
    def an_answer(self, agent: str, key: int) -> None:
        self.check(self.sender.answered(Offer(agent, agent, key, 1, 2), self.now))

    @rule(step=st.sampled_from(["approved", "begun", "sent", "failed"]))
    def a_step(self, step: str) -> None:
        state = self.sender.state
        try:
            actions = getattr(self.sender, step)(self.now)
        except LocalError:
            assert self.sender.state is state
            return
        if self.sender.state is SenderState.SENDING:
            self.has_begun = True
        if step == "sent" and state is SenderState.SENDING:
            self.was_whole = True
        self.check(actions)

    @rule(source=places, result=st.sampled_from(Result), offset=st.sampled_from([0, 0, 0, 1]))
    def an_end(self, source: str, result: Result, offset: int) -> None:
        identifier = (self.message.id if self.message else 1) + offset
        before = self.message
        actions = self.sender.ended(EndTransmissionMsg(None, identifier, result), source, self.now)
        if Remove(Why.CONFIRMED) in actions:
            assert before is not None
            assert self.taken is not None
            assert (before.is_certain, self.has_begun, offset) == (True, True, 0)
            assert (result, source) == (Result.SUCCESS, self.taken.source)
        self.check(actions)

    @rule()
    def a_crash(self) -> None:
        """Crash: only stored notes remain."""
        self.sender = Sender(KEY, SenderSettings(max_attempts=3))
        if self.message is not None and self.message.is_certain:
            self.waiting.append(replace(self.message, kept=self.kept))
        self.message = None

    # Invariants

    def check(self, actions: list[SenderAction]) -> None:
        closed = False
        for place, action in enumerate(actions):
            match action:
                case Ask():
                    assert action.receiver == self.under_way().kept.receiver
                case Approve():
                    assert self.taken is None
                    assert action.offer.key == KEY
                    assert self.under_way().kept.receiver in (None, action.offer.agent)
                    self.taken = action.offer
                case Keep():
                    assert isinstance(actions[place + 1], SendData)
                    self.kept = action.kept
                case SendData():
                    assert action.offer == self.taken
                    assert not self.under_way().is_certain or self.kept.receiver == self.taken.agent
                case CloseAll():
                    closed = True
                case Refuse():
                    assert place == len(actions) - 1
                case _:
                    assert closed or isinstance(action, Hold)
                    self.check_fate(action)

    def check_fate(self, action: FATES) -> None:
        message = self.under_way()
        match action:
            case Hold():
                assert message.kept.first_whole_at is not None
                assert self.now - message.kept.first_whole_at >= 23 * 3600
            case PutBack():
                assert (message.is_certain, self.has_begun) == (False, False)
            case Remove():
                assert message.is_certain == (action.why is Why.CONFIRMED)
            case Bury():
                assert action.kept.failures == 3
            case MoveToEnd():
                assert message.is_certain
                if self.was_whole or message.kept.receiver is not None:
                    assert action.kept.receiver == self.kept.receiver
                elif not self.has_begun:
                    assert action.kept.receiver is None
                assert action.kept.failures - message.kept.failures == (action.why is Why.FAILURE)
                self.waiting.append(replace(message, kept=action.kept))
        self.message = None

    def under_way(self) -> Outgoing:
        assert self.message is not None
        return self.message

    @invariant()
    def it_is_busy_just_while_a_message_is_under_way(self) -> None:
        is_busy = self.sender.state not in (SenderState.IDLE, SenderState.PAUSING)
        assert is_busy == (self.message is not None)
        assert (self.sender.deadline() is None) == (self.sender.state is SenderState.IDLE)


class AnySession(RuleBasedStateMachine):
    """One session with any event at any time."""

    @initialize(
        approval=st.sampled_from([HIGH, LOW]),
        wire=st.sampled_from([data_msg(), data_msg(b""), data_msg(b"x" * 9), data_msg(key=KEY + 1)]),
        result=st.sampled_from(Result),
    )
    def begin(self, approval: object, wire: bytes, result: Result) -> None:
        self.approval = HIGH if approval is HIGH else LOW
        self.wire = wire + b"?"
        self.now = 0.0
        configured = ReceiverSettings(max_message_bytes=8, duplicate_result=result)
        self.session = ReceiverSession(KEY, SENDER, configured, 0.0)
        self.said: list[object] = []
        self.was_approved = False

    @rule(pause=st.sampled_from([0.0, 1.0, 4.0, 6.0]), polls=st.booleans())
    def time_passes(self, pause: float, polls: bool) -> None:
        self.now += pause
        if polls:
            self.hear(self.session.on_time(self.now))
            due = self.session.deadline()
            assert due is None or due > self.now

    @rule()
    def approve(self) -> None:
        if self.session.state in (ReceiverState.WAIT_FOR_APPROVAL, ReceiverState.END):
            self.hear(self.session.approved(self.approval, self.now))
            self.was_approved |= self.session.state is ReceiverState.WAIT_FOR_MESSAGE

    @precondition(lambda self: self.session.state is not ReceiverState.WAIT_FOR_APPROVAL)
    @rule(size=st.integers(0, 30))
    def some_octets(self, size: int) -> None:
        piece, self.wire = self.wire[:size], self.wire[size:]
        self.hear(self.session.receive(piece, self.now))

    @rule()
    def connection_lost(self) -> None:
        self.hear(self.session.lost(self.now))

    @precondition(lambda self: self.session.state is ReceiverState.INSERTING)
    @rule(outcome=st.sampled_from(Insertion))
    def store_says(self, outcome: Insertion) -> None:
        self.hear(self.session.inserted(outcome))

    def hear(self, actions: list) -> None:
        self.said += actions

    @invariant()
    def it_says_each_thing_once_and_frees_at_the_end(self) -> None:
        kinds = [type(action) for action in self.said]
        assert len(set(kinds)) == len(kinds)
        assert (Free in kinds) == (self.session.state is ReceiverState.END)
        assert [kind for kind in (Insert, BuryReceived, Free, Confirm) if kind in kinds] == kinds
        assert Confirm not in kinds or (self.approval is HIGH and self.was_approved)
        assert Insert not in kinds or self.was_approved
        assert self.session.buffered <= 12 + 8


class TestAnySender(AnySender.TestCase):
    settings = settings(max_examples=50, stateful_step_count=60, deadline=None)


class TestAnySession(AnySession.TestCase):
    settings = settings(max_examples=50, stateful_step_count=25, deadline=None)
