"""Decide what to do with each USER payload, so that every message leaves the ring (ring.md 5.3 to 5.5, 5.7)."""

from __future__ import annotations

from protos.ring.frames import NO_ID, REPLIES, Frame, Operation, encode_frame, parse_frame
from protos.ring.lru import LruMap
from protos.ring.own_messages import Copies
from protos.ring.ownerless_messages import NOTHING, OwnerlessMessages, Questions, asked_in, digest_of
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

MARKS = b"ring/mark"  # the queue name in marks


class Relay:
    """One node's memory of messages that passed, and the decision about each new one.

    It keeps `remembered` entries of each kind, in memory only. After a restart, or with too many entries, messages are
    forwarded more often than needed. `seed` is some octets, at most 64, that this node never used before (see
    OwnerlessMessages).

    Carry the decisions out in order: so forwarded messages stay in order.
    """

    __slots__ = ("_mark", "_me", "_mine", "_ownerless", "_seen")

    def __init__(self, me: bytes, max_laps: int = 3, remembered: int = 100_000, seed: bytes = b"") -> None:
        self._me = me
        self._seen: LruMap[bool] = LruMap(remembered)  # by mark: whether it was carried out here
        self._mine = Copies(remembered)
        self._mark = NO_ID  # the request id of the mark under way
        self._ownerless = OwnerlessMessages(me, max_laps, remembered, seed)

    def route(self, payload: bytes) -> Route:
        """Decide what to do with a USER from the predecessor.

        Frames with a request id are not remembered yet: call `passed` or `served` once the frame is safe, then answer
        `A`. Until then the predecessor may send it again.
        """
        frame = parse_frame(payload)
        if frame is None:
            return self._route_unframed(payload)
        if frame.request_id == NO_ID:
            return self._route_without_id(frame, payload)
        return self.route_frame(frame)

    def route_frame(self, frame: Frame) -> Route:
        """Decide about a frame with a request id, also again after it has waited."""
        if frame.request_id == self._mark:
            self._mark = NO_ID
            self._mine.mark_came_back()
            return Drop(DropReason.MARK)
        if self._ownerless.is_mine(frame.request_id):
            return Drop(DropReason.NOBODY_CLAIMS)
        if frame.sender == self._me:
            return _route_mine(frame)
        return self._route_once(frame)

    def passed(self, frame: Frame) -> None:
        """Note that another node's frame is stored for the successor: if it comes again it is dropped (5.5).

        That holds even if this node serves the queue by then: a node behind may have carried the frame out.
        """
        self._remember(frame, served=False)

    def served(self, frame: Frame) -> None:
        """Note that a request was carried out here and its reply is stored, or that a settlement was carried out."""
        self._remember(frame, served=True)

    def put_on(self, payload: bytes) -> None:
        """Note that this node begins a USER, before it can come back.

        A payload that is not a queue operation is taken off when it comes back; a reply counts as seen here.
        """
        frame = parse_frame(payload)
        if frame is None:
            self._mine.put_on(digest_of(payload))
        elif frame.operation in REPLIES and frame.sender != self._me:
            self._remember(frame, served=False)

    @property
    def wants_mark(self) -> bool:
        """True if a message of this node may still come back."""
        return len(self._mine) > 0

    def mark(self) -> bytes:
        """Return a mark, a USER payload to send now.

        When it comes back, no message begun before it is due any more. An earlier mark counts as lost.
        """
        self._mine.mark()
        self._mark = self._ownerless.new_id()
        return encode_frame(Frame(Operation.ERROR, self._me, MARKS, b"", self._mark))

    def _remember(self, frame: Frame, served: bool) -> None:
        if frame.request_id != NO_ID:
            self._seen.put(_mark(frame), served)

    def _route_once(self, frame: Frame) -> Route:
        """Forward or serve another node's frame with a request id, once."""
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
            self._ownerless.heard(digest)
        return _route_others(frame, NOTHING)

    def _route_without_id(self, frame: Frame, payload: bytes) -> Route:
        if frame.sender == self._me:
            return Drop(DropReason.NOT_MINE)
        questions = self._ownerless.judge(digest_of(payload), frame.sender)
        return Drop(DropReason.LAPS) if questions is None else _route_others(frame, questions)

    def _route_unframed(self, payload: bytes) -> Route:
        digest = digest_of(payload)
        if self._mine.take_off(digest):
            return TakenOff()
        questions = self._ownerless.judge(digest, None)
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
    """Return what distinguishes two frames from two passes of one (5.5)."""
    return frame.request_id + bytes([frame.operation, frame.settles])
