"""Decides what becomes of each USER payload, so that everything leaves the ring some day (ring.md 5.3 to 5.5)."""

from __future__ import annotations

from hashlib import blake2b

from protos.ring.frames import NO_ID, REPLIES, Frame, parse_frame
from protos.ring.recent import Recent
from protos.ring.routes import (
    Answer,
    CameBack,
    Deliver,
    Drop,
    PassOn,
    Request,
    Route,
    Settle,
    TakenOff,
    Why,
)

DIGEST = 16  # octets


class Relay:
    """One node's memory of what passed, and the decision about what comes.

    Everything is remembered in memory only, `remembered` entries of each kind. Who forgets, by a restart or because
    there was too much, passes on once more than needed.
    """

    __slots__ = ("_max_laps", "_me", "_mine", "_passes", "_seen")

    def __init__(self, me: bytes, max_laps: int = 3, remembered: int = 100_000) -> None:
        self._me = me
        self._max_laps = max_laps
        self._seen: Recent[bool] = Recent(remembered)  # by mark: was it carried out here?
        self._mine: Recent[int] = Recent(
            remembered
        )  # by digest: copies that I put on, and did not take off yet
        self._passes: Recent[int] = Recent(remembered)  # by digest

    def route(self, payload: bytes) -> Route:
        """What is to be done with a USER from the predecessor.

        Remembers nothing of frames with a request id: call `passed` or `served` once the frame is safe, then answer
        `A`. Until then the predecessor may send it again.
        """
        frame = parse_frame(payload)
        if frame is None:
            return self._route_unframed(payload)
        if frame.sender == self._me:
            return _route_mine(frame)
        if frame.request_id == NO_ID:
            return Drop(Why.LAPS) if self._has_lapped(_digest(payload)) else _route_others(frame)
        served = self._seen.get(_mark(frame))
        if served is None:
            return _route_others(frame)
        if served and frame.operation not in REPLIES:
            return Request(frame, again=True)
        return Drop(Why.SEEN)

    def passed(self, frame: Frame) -> None:
        """`frame`, somebody's, is queued for the successor in the store: it is dropped if it comes again (5.5).

        Also where this node has come to serve the queue since: another node may have carried it out.
        """
        self._remember(frame, served=False)

    def served(self, frame: Frame) -> None:
        """The request was carried out here and its reply is queued; or the settlement was."""
        self._remember(frame, served=True)

    def put_on(self, payload: bytes) -> None:
        """We begin this USER. Call it before it can come back, for all that we begin.

        What is no queue operation is taken off when it comes back; a reply has passed here already.
        """
        frame = parse_frame(payload)
        if frame is None:
            digest = _digest(payload)
            self._mine.put(digest, (self._mine.get(digest) or 0) + 1)
        elif frame.sender != self._me and frame.operation in REPLIES:
            self._remember(frame, served=False)

    def _remember(self, frame: Frame, served: bool) -> None:
        if frame.request_id != NO_ID:
            self._seen.put(_mark(frame), served)

    def _route_unframed(self, payload: bytes) -> Route:
        digest = _digest(payload)
        if self._take_off(digest):
            return TakenOff()
        return Drop(Why.LAPS) if self._has_lapped(digest) else Deliver(payload)

    def _take_off(self, digest: bytes) -> bool:
        """Whether a copy of mine was due back: each counts once."""
        copies = self._mine.pop(digest)
        if copies is not None and copies > 1:
            self._mine.put(digest, copies - 1)
        return copies is not None

    def _has_lapped(self, digest: bytes) -> bool:
        """Counts a pass; whether it is one too many."""
        passes = self._passes.get(digest) or 0
        if not self._max_laps:
            return False
        if passes >= self._max_laps:
            self._passes.pop(digest)
            return True
        self._passes.put(digest, passes + 1)
        return False


def _route_mine(frame: Frame) -> Route:
    if frame.request_id == NO_ID:
        return Drop(Why.NOT_MINE)
    if frame.settles:
        return Drop(Why.NOBODY_HOLDS_IT)
    return Answer(frame) if frame.operation in REPLIES else CameBack(frame)


def _route_others(frame: Frame) -> Route:
    if frame.settles:
        return Settle(frame)
    return PassOn(frame) if frame.operation in REPLIES else Request(frame)


def _mark(frame: Frame) -> bytes:
    """What tells two passes of one frame from two frames (5.5)."""
    return frame.request_id + bytes([frame.operation, frame.settles])


def _digest(payload: bytes) -> bytes:
    return blake2b(payload, digest_size=DIGEST).digest()
