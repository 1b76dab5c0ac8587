"""A connection's input: bytes become events, and what cannot be handled yet waits, whatever the protocol.

Events are handled one after the other. Handling one ends with its answer, or with a place for it among the answers:
what an edge gives to one ordered pipe may so overlap. Where nothing may, the handler holds the input up, and meanwhile
the rest stays unparsed. An event that goes another way than those before it `is_exclusive`: it waits for their answers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic

from protos.types import PeerError
from services.kit.session.conversation import Conversation
from services.kit.session.parsing import EventT, Handler, Parser

MAX_UNANSWERED_RUNS = 64  # of one connection: this many events may wait for their answers at a time
WORK_A_TURN = 32  # of one connection, then the others have theirs: many requests need no store to wait for


class Inflow(Generic[EventT]):
    """What waits, in this order: the event at hand, the parser's rest, whole chunks, the peer's FIN."""

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
        self._busy = False  # a request is under way that all others wait for
        self._congested = False  # too much waits for the store, of all connections together
        self._resting = False  # the others have their turn
        self._left = WORK_A_TURN  # of this connection's turn
        self._turn = 0.0  # when it began: the loop's clock stands still while it makes its round
        self._paused = False  # we hold reading up
        self._eof = False  # the peer's FIN has come
        self.eof_parsed = False  # and nothing is left before it
        self.pumping = False  # an event is being handled: a callback meanwhile leaves the rest to that
        self.violation: PeerError | None = None  # what the peer did wrong

    # from the kit

    def received(self, data: bytes, now: float) -> None:
        conversation = self._conversation
        if conversation.closing:
            return
        if now != self._turn:
            self._turn, self._left = now, WORK_A_TURN
        if (  # `is_waiting` and more of the same, written out: this is asked for every chunk
            self._busy
            or self._congested
            or self._events is not None
            or self._held is not None
            or self._chunks
            or len(conversation.answers) >= MAX_UNANSWERED_RUNS
        ):
            self._put_by(data)
        else:
            self._pump(self._parser.receive(data, now))

    def eof(self) -> None:
        self._eof = True
        self.proceed()  # the rest of the input comes first

    def deadline(self) -> float | None:
        """None while something is under way: what the clock brings comes after it too."""
        due = self._parser.deadline()
        return None if due is None or self.is_waiting() or self._must_wait() else due

    def on_time(self, now: float) -> None:
        due = self.deadline()
        if due is not None and now >= due:
            self._pump(self._parser.on_time(now))

    def restart_clock(self, now: float) -> None:
        self._parser.restart_clock(now)

    def lost(self) -> None:
        """The connection has gone. The session is let go too: nothing keeps it but answers that are still to come."""
        del self._handler

    @property
    def buffered(self) -> int:
        return self._parser.buffered + (sum(map(len, self._chunks)) if self._chunks else 0)

    # from those who handle the events

    def hold(self) -> None:
        """The request at hand is under way: nothing else begins before it is answered."""
        self._busy = True

    def free(self) -> None:
        self._busy = False
        self.proceed()

    def hold_until_clear(self, when_clear: Callable[[Callable[[], None]], None]) -> None:
        """Too much waits for the store: nothing else begins before there is room. when_clear: calls back then, once."""
        if not self._congested:
            self._congested = True
            when_clear(self._clear)

    def _clear(self) -> None:
        self._congested = False
        self.proceed()

    def run_answered(self) -> None:
        """Nobody was held up for that run alone, unless there are too many, or it all ends after it."""
        if (
            self._paused
            or self._eof
            or self._held is not None
            or self._conversation.closing
            or self._conversation.drained
        ):
            self.proceed()

    def is_waiting(self) -> bool:
        """True if there is input that has not been handled, or not answered."""
        return self._busy or self._held is not None or self._events is not None or bool(self._chunks)

    def proceed(self) -> None:
        """Something that was waited for has come: go on with the input, as far as it goes."""
        if self._conversation.is_lost:
            return
        while not (self.pumping or self._conversation.closing or self._must_wait()):
            if self._held is not None:  # perhaps it still comes too early
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
        """While output waits, the kit holds reading up and tells when both go on (`resumed`): unless we do so too."""
        if self._conversation.wire.is_blocked():
            self._resume()

    # inside

    def _put_by(self, data: bytes) -> None:
        if self._chunks is None:
            self._chunks = deque()
        self._chunks.append(data)
        self._pause()

    def _pump(self, events: Iterator[EventT]) -> None:
        """Handles events until one must be waited for; good ones before a bad one all count."""
        conversation, handler = self._conversation, self._handler
        self.pumping = True
        first = True  # whoever called has looked whether it may be handled
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
        """One client that asks for what needs no store must not keep the edge from all others."""
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
