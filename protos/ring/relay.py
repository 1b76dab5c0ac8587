"""Decides what becomes of each USER payload, so that everything leaves the ring some day (ring.md 5.3 to 5.5, 5.7)."""

from __future__ import annotations

from protos.ring.copies import Copies
from protos.ring.frames import NO_ID, REPLIES, Frame, Operation, encode_frame, parse_frame
from protos.ring.laps import NOTHING, Laps, Questions, asked_in, digest_of
from protos.ring.lru import LruMap
from protos.ring.routes import (
    Answer,
    CameBack,
    Deliver,
    Drop,
    DropReason,
    PassOn,
    Request,
    Route,
    Settle,
    TakenOff,
)

MARKS = b"ring/mark"  # the queue that marks name


class Relay:
    """One node's memory of what passed, and the decision about what comes.

    It is in memory only, `remembered` entries of each kind. Who forgets, by a restart or because there was too much,
    passes on more often than needed. `seed`: some octets, at most 64, that this node never had before (see Laps).

    What `route` says is carried out in the order in which it was asked: what is passed on stays in order.
    """

    __slots__ = ("_laps", "_mark", "_me", "_mine", "_seen")

    def __init__(self, me: bytes, max_laps: int = 3, remembered: int = 100_000, seed: bytes = b"") -> None:
        self._me = me
        self._seen: LruMap[bool] = LruMap(remembered)  # by mark: was it carried out here?
        self._mine = Copies(remembered)
        self._mark = NO_ID  # the request id of the one that is on its way
        self._laps = Laps(me, max_laps, remembered, seed)

    def route(self, payload: bytes) -> Route:
        """What is to be done with a USER from the predecessor.

        Nothing is remembered yet of frames with a request id: call `passed` or `served` once the frame is safe, then
        answer `A`. Until then the predecessor may send it again.
        """
        frame = parse_frame(payload)
        if frame is None:
            return self._route_unframed(payload)
        if frame.request_id == NO_ID:
            return self._route_without_id(frame, payload)
        return self.route_frame(frame)

    def route_frame(self, frame: Frame) -> Route:
        """The same of a frame with a request id, also if it has been routed before, and has waited since."""
        if frame.request_id == self._mark:
            self._mark = NO_ID
            self._mine.mark_came_back()
            return Drop(DropReason.MARK)
        if self._laps.is_mine(frame.request_id):
            return Drop(DropReason.NOBODY_CLAIMS)
        if frame.sender == self._me:
            return _route_mine(frame)
        return self._route_once(frame)

    def passed(self, frame: Frame) -> None:
        """`frame`, somebody's, is queued for the successor in the store: it is dropped if it comes again (5.5).

        So it is if this node serves the queue by then: the node behind it may have carried it out.
        """
        self._remember(frame, served=False)

    def served(self, frame: Frame) -> None:
        """The request was carried out here and its reply is queued; or the settlement was."""
        self._remember(frame, served=True)

    def put_on(self, payload: bytes) -> None:
        """We begin this USER. Call it before it can come back, for all that we begin.

        What is no queue operation is taken off when it comes back. A reply has been seen here with that.
        """
        frame = parse_frame(payload)
        if frame is None:
            self._mine.put_on(digest_of(payload))
        elif frame.operation in REPLIES and frame.sender != self._me:
            self._remember(frame, served=False)

    @property
    def wants_mark(self) -> bool:
        """Whether something that this node put on may still come back."""
        return len(self._mine) > 0

    def mark(self) -> bytes:
        """A USER payload to be queued for the successor: when it comes back, what has been put on by now is not due any
        more. One that was on its way counts as lost."""
        self._mine.mark()
        self._mark = self._laps.new_id()
        return encode_frame(Frame(Operation.ERROR, self._me, MARKS, b"", self._mark))

    def _remember(self, frame: Frame, served: bool) -> None:
        if frame.request_id != NO_ID:
            self._seen.put(_mark(frame), served)

    def _route_once(self, frame: Frame) -> Route:
        """Somebody's, with a request id: it passes once."""
        served = self._seen.get(_mark(frame))
        if served is not None:
            return (
                Request(frame, again=True)
                if served and frame.operation not in REPLIES
                else Drop(DropReason.SEEN)
            )
        digest = asked_in(frame)
        if digest is not None:
            if self._mine.has(digest):
                return Drop(DropReason.CLAIMED)
            self._laps.heard(digest)
        return _route_others(frame, NOTHING)

    def _route_without_id(self, frame: Frame, payload: bytes) -> Route:
        if frame.sender == self._me:
            return Drop(DropReason.NOT_MINE)
        questions = self._laps.judge(digest_of(payload), frame.sender)
        return Drop(DropReason.LAPS) if questions is None else _route_others(frame, questions)

    def _route_unframed(self, payload: bytes) -> Route:
        digest = digest_of(payload)
        if self._mine.take_off(digest):
            return TakenOff()
        questions = self._laps.judge(digest, None)
        return Drop(DropReason.LAPS) if questions is None else Deliver(payload, questions)


def _route_mine(frame: Frame) -> Route:
    if frame.settles:
        return Drop(DropReason.NOBODY_HOLDS_IT)
    return Answer(frame) if frame.operation in REPLIES else CameBack(frame)


def _route_others(frame: Frame, questions: Questions) -> Route:
    if frame.settles:
        return Settle(frame)
    return PassOn(frame, questions) if frame.operation in REPLIES else Request(frame, questions)


def _mark(frame: Frame) -> bytes:
    """What tells two passes of one frame from two frames (5.5)."""
    return frame.request_id + bytes([frame.operation, frame.settles])
