"""A connection to the tail: a predecessor's, or of somebody who wants to be one (ring.md 2, 3.5)."""

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
from services.kit.session import Conversation, Inflow, Peer, Slot, Wire
from services.ring.node.outgoing.passage import Arrivals


class InboundHost(Protocol):
    """The node, as its inbound connections see it."""

    arrivals: Arrivals
    ack_s: float

    def heard(self, link: int) -> bool:
        """A whole message came. False if it is nobody's of whom one is wanted."""

    def received(self, message: Loop) -> None:
        """A LOOP of the predecessor."""

    def unusable(self, session: Inbound, reason: str) -> None:
        """A LOOP of his that nobody can act upon."""

    def user_received(self) -> None:
        """To count it."""

    def inbound_lost(self, session: Inbound, why: str) -> None:
        """Nothing more comes of it; told once or more."""


class Inbound:
    """The kit's `Session`, and the `Handler` of its own input. `link` is the connection's number at the node.

    Messages are answered in their order (2.2): what comes before a USER that is not safe yet is not held up, what
    comes after it waits. At most 64 wait so; then nothing more is read.
    """

    __slots__ = (
        "_conversation",
        "_eof_due",
        "_host",
        "_inflow",
        "_is_answering",
        "_is_finishing",
        "_is_over",
        "_why",
        "link",
        "since",
    )

    def __init__(self, host: InboundHost, link: int, wire: Wire, limits: Limits) -> None:
        self.link = link
        self.since = wire.loop_time()
        self._host = host
        self._conversation = Conversation(wire)
        self._inflow: Inflow[Message] = Inflow(self._conversation, Connection(limits), self)
        self._eof_due: float | None = None  # the predecessor has said all: when he is not answered any more
        self._is_finishing = False
        self._is_answering = False  # answers are known that are not written yet
        self._is_over = False
        self._why = ""  # it ended; the first reason counts

    @property
    def peer(self) -> Peer:
        return self._conversation.wire.peer

    @property
    def is_answered(self) -> bool:
        return not self._conversation.answers

    # what the node tells

    def close(self, why: str) -> None:
        """The node does not want it, or not any more: what can be answered has been."""
        self._why = self._why or why
        self._end()

    def finish(self) -> None:
        """The drain: nothing more is taken, what was taken is answered once it is safe."""
        self._is_finishing = True
        self._why = self._why or "this node is stopping"
        self._conversation.drained = True
        if not self._conversation.is_lost:
            self._inflow.hold()
            self._conversation.wire.pause()
        self.end_if_done()

    # what the kit tells

    def received(self, data: bytes, now: float) -> None:
        self._inflow.received(data, now)

    @property
    def buffered(self) -> int:
        return self._inflow.buffered

    def resumed(self, now: float) -> None:
        self._inflow.restart_clock(now)
        self._inflow.proceed()

    def deadline(self) -> float | None:
        return self._inflow.deadline() if self._eof_due is None else self._eof_due

    def on_time(self, now: float) -> None:
        if self._eof_due is None:
            self._inflow.on_time(now)
        elif now >= self._eof_due:
            self._end()

    def eof(self, now: float) -> None:
        self._why = self._why or "the predecessor closed it"
        self._inflow.eof()

    def drain(self) -> None:
        self.finish()

    def lost(self, reset: bool) -> None:
        self._conversation.is_lost = True
        self._inflow.lost()
        self._host.inbound_lost(self, self._why or ("it was reset" if reset else "it closed"))

    # what the input tells

    def handle(self, event: Message) -> None:
        if not self._host.heard(self.link):
            return  # it is being closed
        slot = self._conversation.expect()
        match event:
            case User(payload):
                self._host.user_received()
                self._host.arrivals.received(payload, partial(self._answer, slot))
            case Unusable(reason):
                self._host.unusable(self, reason)
                self._answer(slot)
            case Leader() | LinkBroken() | BreakLinkForced():
                self._answer(slot)  # first: acting upon it may close the link
                self._host.received(event)
            case _:
                assert_never(event)

    def work(self, event: Message) -> int:
        return 1

    def is_exclusive(self, event: Message) -> bool:
        return False

    def end_if_done(self) -> None:
        conversation, inflow = self._conversation, self._inflow
        if conversation.is_lost or self._is_over:
            return
        if (violation := inflow.violation) is not None:
            self.refuse(violation.reason, violation.detail)
            self._why = violation.reason
            self._end()  # at once (2.5); what is not answered yet comes again
            return
        if inflow.eof_parsed and self._eof_due is None:
            self._host.inbound_lost(self, self._why)
            self._eof_due = (
                conversation.wire.loop_time() + self._host.ack_s
            )  # nobody waits longer for an `A` (4.5)
            conversation.wire.reschedule()
        if (inflow.eof_parsed or self._is_finishing) and not conversation.answers:
            self._end()

    def refuse(self, reason: str, detail: str = "") -> None:
        self._conversation.wire.refuse(reason, detail)

    # inside

    def _answer(self, slot: Slot) -> None:
        """Soon: of many that the store has taken at once each would else be a write of its own."""
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
