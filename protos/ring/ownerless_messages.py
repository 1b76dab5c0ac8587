"""Find messages that keep going around and have no owner, by counting passes and by asking (ring.md 5.7)."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

from protos.ring.frames import ID, Frame, Operation, encode_frame
from protos.ring.lru import LruMap

DIGEST = 16  # octets
QUEUE = b"ring/laps"  # of questions


@dataclass(frozen=True, slots=True)
class Passes:
    """How often a payload passed, and at which pass to ask for its owner."""

    count: int
    ask_at: int


@dataclass(frozen=True, slots=True)
class Questions:
    """Questions, as USER payloads, to be queued directly before and behind a forwarded payload; or none."""

    before: bytes = b""  # a USER payload; empty: no questions
    behind: bytes = b""  # a USER payload; empty: no questions

    def with_between(self, payload: bytes) -> list[bytes]:
        """Return all payloads to queue, in order. A payload may be empty: it is forwarded like any other."""
        return [self.before, payload, self.behind] if self.before else [payload]


NOTHING = Questions()


class OwnerlessMessages:
    """Counts passes by digest, asks about frequent ones, and takes off those that no node claims.

    `seed` makes the request ids of questions differ from those of this node's former processes, which others have seen.
    """

    __slots__ = ("_asked", "_between", "_limit", "_me", "_number", "_passes", "_seed")

    def __init__(self, me: bytes, max_laps: int, remembered: int, seed: bytes) -> None:
        self._me = me
        self._limit = max_laps
        self._seed = seed
        self._number = 0  # of ids
        self._passes: LruMap[Passes] = LruMap(remembered)
        # by request id: digest, is it the first?
        self._asked: LruMap[tuple[bytes, bool]] = LruMap(remembered)
        self._between: bytes | None = None  # an unclaimed digest, until the question behind it comes

    def judge(self, digest: bytes, sender: bytes | None) -> Questions | None:
        """Return the questions to forward a payload with; None to take it off. sender: the name in it, if any."""
        if not self._limit:
            return NOTHING
        if digest == self._between:
            self._between = None
            self._passes.pop(digest)
            return None
        passes = self._passes.get(digest) or Passes(0, self._limit)
        asks = passes.count >= passes.ask_at
        # Without effect so far, as for a heartbeat whose sender is present: wait for twice as many passes.
        ask_at = 2 * passes.ask_at if asks else passes.ask_at
        self._passes.put(digest, Passes(passes.count + 1, ask_at))
        return self._ask(digest, sender or self._me) if asks else NOTHING

    def is_mine(self, question: bytes) -> bool:
        """Return whether this is the id of a question of this node: if so, no node took it off."""
        asked = self._asked.pop(question)
        if asked is not None:
            digest, is_first = asked
            self._between = digest if is_first else None
        return asked is not None

    def heard(self, digest: bytes) -> None:
        """Note another node's question: two nodes that ask about one copy would take off two."""
        passes = self._passes.get(digest)
        if passes is not None:
            ask_at = max(passes.ask_at, passes.count + self._limit)
            self._passes.put(digest, Passes(passes.count, ask_at))

    def new_id(self) -> bytes:
        """Return a request id that was never used."""
        self._number += 1
        number = self._number.to_bytes(8, "big")
        return blake2b(number + self._me, digest_size=ID, key=self._seed).digest()

    def _ask(self, digest: bytes, name: bytes) -> Questions:
        return Questions(self._question(digest, name, True), self._question(digest, name, False))

    def _question(self, digest: bytes, name: bytes, is_first: bool) -> bytes:
        request_id = self.new_id()
        self._asked.put(request_id, (digest, is_first))
        return encode_frame(Frame(Operation.ERROR, name, QUEUE, digest, request_id))


def digest_of(payload: bytes) -> bytes:
    """Return a digest of a payload that is the same on all nodes (5.7)."""
    return blake2b(payload, digest_size=DIGEST).digest()


def asked_in(frame: Frame) -> bytes | None:
    """Return the digest that a question is about; None if the frame is no question.

    An ERROR that only looks like a question has a digest that no payload has.
    """
    is_question = frame.operation is Operation.ERROR and frame.queue == QUEUE and len(frame.message) == DIGEST
    return frame.message if is_question else None
