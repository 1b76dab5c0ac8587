"""A connection to the tail: from a predecessor, or from a node that may become one (ring.md 2, 3.5)."""

from __future__ import annotations

from functools import partial
from typing import Protocol, assert_never

from protos.ring import (
    ACK,
    BreakLinkForced,
    Connection,
    Leader,
    Limits,
    LinkBroken,
    Loop,
    Message,
    Unusable,
    User,
)
from services.kit.session import Conversation, Inflow, InflowSession, Peer, Slot, Wire
from services.ring.node.node_metrics import LOOP, USER
from services.ring.node.outgoing.user_flow import UserSink


class InboundHost(Protocol):
    """The node, as its inbound connections see it."""

    user_sink: UserSink
    ack_s: float

    def heard(self, link: int) -> bool:
        """Report a whole message. Return False if the node wants none from this connection."""

    def count_received(self, kind: str) -> None:
        """Count a message: USER or LOOP."""

    def received(self, message: Loop) -> None:
        """Act on a LOOP of the predecessor."""

    def inbound_lost(self, session: Inbound, why: str) -> None:
        """Note that no more messages come from the connection; it may be called more than once."""


class Inbound(InflowSession[Message, Conversation]):
    """The kit's `Session`, and the `Handler` of its own input. `link` is the connection's number at the node.

    Messages are answered in their order (2.2): those behind a USER that is not stored yet wait for it. Reading stops
    while 64 wait.
    """

    __slots__ = (
        "_eof_due",
        "_host",
        "_is_answering",
        "_is_finishing",
        "_is_over",
        "_why",
        "link",
        "since",
    )

    def __init__(self, host: InboundHost, link: int, wire: Wire, limits: Limits) -> None:
        conversation = Conversation(wire)
        super().__init__(conversation, Inflow(conversation, Connection(limits), self))
        self.link = link
        self.since = wire.loop_time()
        self._host = host
        self._eof_due: float | None = None  # after the predecessor's FIN: when to stop answering
        self._is_finishing = False
        self._is_answering = False  # known answers are about to be written
        self._is_over = False
        self._why = ""  # the first reason for the end

    @property
    def peer(self) -> Peer:
        """The other end of the connection."""
        return self._conversation.wire.peer

    @property
    def is_answered(self) -> bool:
        """True if no message waits for its answer."""
        return not self._conversation.answers

    def close(self, why: str) -> None:
        """Write the answers that are known and close: the node does not want this connection, or no longer."""
        self._why = self._why or why
        self._end()

    def drain(self) -> None:
        """Take no more messages; answer those that were taken once they are stored, then close."""
        self._is_finishing = True
        self._why = self._why or "this node is stopping"
        self._conversation.drained = True
        if not self._conversation.is_lost:
            self._inflow.hold()
            self._conversation.wire.pause()
        self.end_if_done()

    def deadline(self) -> float | None:
        """Return when an unfinished message, or the wait for answers after a FIN, times out."""
        return self._inflow.deadline() if self._eof_due is None else self._eof_due

    def on_time(self, now: float) -> None:
        """Refuse an unfinished message, or close after a FIN."""
        if self._eof_due is None:
            self._inflow.on_time(now)
        elif now >= self._eof_due:
            self._end()

    def eof(self, now: float) -> None:
        """Handle the predecessor's FIN: what it sent before is still answered."""
        self._why = self._why or "the predecessor closed it"
        self._inflow.eof()

    def lost(self, reset: bool) -> None:
        """Report the end of the connection to the node."""
        self._conversation.is_lost = True
        self._inflow.lost()
        self._host.inbound_lost(self, self._why or ("it was reset" if reset else "it closed"))

    # Handler

    def handle(self, event: Message) -> None:
        """Pass a message on to the node, and answer it once it is safe."""
        if not self._host.heard(self.link):
            return  # it is being closed
        slot = self._conversation.expect()
        match event:
            case User(payload):
                self._host.count_received(USER)
                self._host.user_sink.received(payload, partial(self._answer, slot))
            case Unusable(reason):
                self._host.count_received(LOOP)
                self._conversation.wire.refuse(reason)
                self._answer(slot)
            case Leader() | LinkBroken() | BreakLinkForced():
                self._host.count_received(LOOP)
                self._answer(slot)  # first: acting on the message may close the link
                self._host.received(event)
            case _:
                assert_never(event)

    def work(self, event: Message) -> int:
        """Return the event's share of a turn."""
        return 1

    def is_exclusive(self, event: Message) -> bool:
        """Return False: every message may follow unanswered ones."""
        return False

    def end_if_done(self) -> None:
        """Close after a violation, or once everything is answered after a FIN or a drain."""
        conversation, inflow = self._conversation, self._inflow
        if conversation.is_lost or self._is_over:
            return
        if (violation := inflow.violation) is not None:
            conversation.wire.refuse(violation.reason, violation.detail)
            self._why = violation.reason
            self._end()  # at once (2.5); unanswered messages are sent again
            return
        if inflow.eof_parsed and self._eof_due is None:
            self._host.inbound_lost(self, self._why)
            # no peer waits longer for an `A` (4.5)
            self._eof_due = conversation.wire.loop_time() + self._host.ack_s
            conversation.wire.reschedule()
        if (inflow.eof_parsed or self._is_finishing) and not conversation.answers:
            self._end()

    def _answer(self, slot: Slot) -> None:
        """Answer soon, so that messages stored by one call are answered by one write."""
        slot.reply = ACK
        if not self._is_answering:
            self._is_answering = True
            self._conversation.wire.soon(self._write_answers)

    def _write_answers(self) -> None:
        self._is_answering = False
        if not self._conversation.is_lost:
            self._conversation.write_known()
            self._inflow.run_answered()

    def _end(self) -> None:
        if self._is_over:
            return
        self._conversation.write_known()
        self._is_over = self._conversation.closing = True
        self._host.inbound_lost(self, self._why or "we closed it")
        self._conversation.wire.close()
