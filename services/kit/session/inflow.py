"""Parse a connection's input and hand its events to the handler, with back-pressure.

Events are handled one after the other. Handling an event ends with its reply or with a slot for it, so that requests to
one ordered pipe may overlap. A handler that must not overlap holds the input up; the rest stays unparsed meanwhile. An
event that takes another way than those before it `is_exclusive`: it waits until they are answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic

from protos.types import PeerError
from services.kit.session.conversation import Conversation
from services.kit.session.parsing import EventT, Handler, Parser

MAX_UNANSWERED_RUNS = 64  # events of one connection that may wait for their replies
WORK_A_TURN = 32  # requests per turn of a connection, as many requests never wait for the store


class Inflow(Generic[EventT]):
    """A connection's pending input, in this order: an event, the parser's rest, whole chunks, the peer's FIN."""

    __slots__ = (
        "_busy",
        "_chunks",
        "_congested",
        "_conversation",
        "_eof",
        "_events",
        "_handler",
        "_held",
        "_left",
        "_parser",
        "_paused",
        "_resting",
        "_turn",
        "eof_parsed",
        "pumping",
        "violation",
    )

    def __init__(self, conversation: Conversation, parser: Parser[EventT], handler: Handler[EventT]) -> None:
        self._conversation = conversation
        self._parser = parser
        self._handler = handler
        self._held: EventT | None = None
        self._events: Iterator[EventT] | None = None
        self._chunks: deque[bytes] | None = None
        self._busy = False  # a request is under way that must not overlap others
        self._congested = False  # all connections together wait for too much of the store
        self._resting = False  # other connections have their turn
        self._left = WORK_A_TURN  # requests left in this turn
        self._turn = 0.0  # when it began; the loop's time is constant within an iteration
        self._paused = False  # reading is paused by us
        self._eof = False  # the peer's FIN has come
        self.eof_parsed = False  # and all input before it was parsed
        self.pumping = False  # an event is being handled; callbacks meanwhile leave the rest to it
        self.violation: PeerError | None = None  # the peer's error, once there was one

    # Called by the session

    def received(self, data: bytes, now: float) -> None:
        """Parse and handle a chunk, or keep it until earlier input is done."""
        conversation = self._conversation
        if conversation.closing:
            return
        if now != self._turn:
            self._turn, self._left = now, WORK_A_TURN
        if (  # `is_waiting` and `_must_wait` inlined: this runs for every chunk
            self._busy
            or self._congested
            or self._events is not None
            or self._held is not None
            or self._chunks
            or len(conversation.answers) >= MAX_UNANSWERED_RUNS
        ):
            self._keep(data)
        else:
            self._pump(self._parser.receive(data, now))

    def eof(self) -> None:
        """Handle the peer's FIN, after the rest of the input."""
        self._eof = True
        self.proceed()

    def deadline(self) -> float | None:
        """Return the parser's deadline; None while a request is under way, as it comes after that."""
        due = self._parser.deadline()
        return None if due is None or self.is_waiting() or self._must_wait() else due

    def on_time(self, now: float) -> None:
        """Handle the parser's deadline if it has passed."""
        due = self.deadline()
        if due is not None and now >= due:
            self._pump(self._parser.on_time(now))

    def restart_clock(self, now: float) -> None:
        """Restart the peer's deadline."""
        self._parser.restart_clock(now)

    def lost(self) -> None:
        """Release the session: only replies that are still to come keep it in memory."""
        del self._handler

    @property
    def buffered(self) -> int:
        """Return the bytes of input held."""
        return self._parser.buffered + (sum(map(len, self._chunks)) if self._chunks else 0)

    # Called by the handlers of events

    def hold(self) -> None:
        """Begin no other request until `free` is called."""
        self._busy = True

    def free(self) -> None:
        """End `hold`, and continue with the input."""
        self._busy = False
        self.proceed()

    def hold_until_clear(self, when_clear: Callable[[Callable[[], None]], None]) -> None:
        """Begin no request until `when_clear` calls back, once: the store is congested."""
        if not self._congested:
            self._congested = True
            when_clear(self._clear)

    def _clear(self) -> None:
        self._congested = False
        self.proceed()

    def run_answered(self) -> None:
        """Continue with the input if it may have waited for this run, or if the connection is closing."""
        conversation = self._conversation
        if (
            self._paused
            or self._eof
            or self._held is not None
            or conversation.closing
            or conversation.drained
        ):
            self.proceed()

    def is_waiting(self) -> bool:
        """Return True if a request is under way or input waits."""
        return self._busy or self._held is not None or self._events is not None or bool(self._chunks)

    def proceed(self) -> None:
        """Handle the pending input as far as possible."""
        if self._conversation.is_lost:
            return
        while not (self.pumping or self._conversation.closing or self._must_wait()):
            if self._held is not None:  # perhaps it must still wait
                if self._conversation.answers and self._handler.is_exclusive(self._held):
                    break
                self._handle_held(self._held)
            elif self._events is not None:
                events, self._events = self._events, None
                self._pump(events)
            elif self._chunks:
                self._pump(self._parser.receive(self._chunks.popleft(), self._conversation.wire.loop_time()))
            elif self._eof and not self.eof_parsed:
                self.eof_parsed = True
                self._pump(self._parser.receive_eof(self._conversation.wire.loop_time()))
            else:
                self._resume()
                break
        self.yield_to_output()
        if self._parser.deadline() is not None and not self.pumping:
            self._conversation.wire.reschedule()
        self._handler.end_if_done()

    def yield_to_output(self) -> None:
        """End our own pause while output is blocked: the connection pauses reading, and calls `resumed` after it."""
        if self._conversation.wire.is_blocked():
            self._resume()

    # Internal

    def _keep(self, data: bytes) -> None:
        if self._chunks is None:
            self._chunks = deque()
        self._chunks.append(data)
        self._pause()

    def _pump(self, events: Iterator[EventT]) -> None:
        """Handle events until one must wait. All valid events before a violation are handled."""
        conversation, handler = self._conversation, self._handler
        self.pumping = True
        first = True  # the caller has checked that it may be handled
        try:
            for event in events:
                if (not first and self._must_wait()) or (
                    conversation.answers and handler.is_exclusive(event)
                ):
                    self._held, self._events = event, events
                    self._pause()
                    return
                first = False
                handler.handle(event)
                if conversation.closing:
                    break
                self._left -= handler.work(event)
                if self._left <= 0:
                    self._events = events
                    self._rest()
                    return
            self._events = None
        except PeerError as error:
            self._events = None
            self.violation = error
            conversation.closing = True
        finally:
            self.pumping = False
        if conversation.closing or self.eof_parsed or conversation.drained:
            handler.end_if_done()

    def _rest(self) -> None:
        """Give other connections their turn."""
        self._resting = True
        self._pause()
        self._conversation.wire.soon(self._rested)

    def _rested(self) -> None:
        self._resting, self._left = False, WORK_A_TURN
        self.proceed()

    def _handle_held(self, event: EventT) -> None:
        self._held = None
        self.pumping = True
        try:
            self._handler.handle(event)
        finally:
            self.pumping = False

    def _must_wait(self) -> bool:
        conversation = self._conversation
        return (
            self._busy
            or self._resting
            or self._congested
            or len(conversation.answers) >= MAX_UNANSWERED_RUNS
            or conversation.wire.is_blocked()
        )

    def _pause(self) -> None:
        if not (self._paused or self._conversation.is_lost or self._conversation.wire.is_blocked()):
            self._paused = True
            self._conversation.wire.pause()

    def _resume(self) -> None:
        if self._paused:
            self._paused = False
            self._conversation.wire.resume()
