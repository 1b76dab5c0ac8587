"""Finds what goes round the ring and is nobody's, by passes and by asking (ring.md 5.7)."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

from protos.ring.frames import ID, Frame, Operation, encode_frame
from protos.ring.lru import LruMap

DIGEST = 16  # octets
QUEUE = b"ring/laps"  # of questions


@dataclass(frozen=True, slots=True)
class Passes:
    """How often a payload passed, and at which pass to ask whose it is."""

    count: int
    ask_at: int


@dataclass(frozen=True, slots=True)
class Questions:
    """Questions, as USER payloads, to be queued directly before and behind what is passed on; or nothing."""

    before: bytes = b""
    behind: bytes = b""

    def with_between(self, payload: bytes) -> list[bytes]:
        """All that is to be queued, in its order. A payload may be empty: it is passed on like any other."""
        return [self.before, payload, self.behind] if self.before else [payload]


NOTHING = Questions()


class Laps:
    """Counts passes by digest; asks about what passed often; knows by the answer what to take off.

    `seed` makes the request ids of questions unlike those of this node's earlier lives, which others have seen.
    """

    __slots__ = ("_asked", "_between", "_limit", "_me", "_number", "_passes", "_seed")

    def __init__(self, me: bytes, max_laps: int, remembered: int, seed: bytes) -> None:
        self._me = me
        self._limit = max_laps
        self._seed = seed
        self._number = 0  # of ids
        self._passes: LruMap[Passes] = LruMap(remembered)
        self._asked: LruMap[tuple[bytes, bool]] = LruMap(
            remembered
        )  # by request id: digest, is it the first?
        self._between: bytes | None = None  # nobody claims this digest; until the question behind comes

    def judge(self, digest: bytes, sender: bytes | None) -> Questions | None:
        """What to pass the payload on with; None to take it off. `sender` is the name it has, if it has one."""
        if not self._limit:
            return NOTHING
        if digest == self._between:
            self._between = None
            self._passes.pop(digest)
            return None
        passes = self._passes.get(digest) or Passes(0, self._limit)
        asks = passes.count >= passes.ask_at
        # In vain so far, as with a heartbeat whose sender is there: twice as many passes until the next time.
        ask_at = 2 * passes.ask_at if asks else passes.ask_at
        self._passes.put(digest, Passes(passes.count + 1, ask_at))
        return self._ask(digest, sender or self._me) if asks else NOTHING

    def is_mine(self, question: bytes) -> bool:
        """Whether this is the request id of a question of mine; if so, it went round and nobody took it off."""
        asked = self._asked.pop(question)
        if asked is not None:
            digest, is_first = asked
            self._between = digest if is_first else None
        return asked is not None

    def heard(self, digest: bytes) -> None:
        """Somebody else asks: two who ask about one copy would take off two."""
        passes = self._passes.get(digest)
        if passes is not None:
            ask_at = max(passes.ask_at, passes.count + self._limit)
            self._passes.put(digest, Passes(passes.count, ask_at))

    def new_id(self) -> bytes:
        """A request id that nobody has seen."""
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
    """What equal payloads have in common, in all nodes (5.7)."""
    return blake2b(payload, digest_size=DIGEST).digest()


def asked_in(frame: Frame) -> bytes | None:
    """The digest that a question is about; None for a frame that is none.

    An ERROR that only looks like one has a digest that no payload has.
    """
    is_question = frame.operation is Operation.ERROR and frame.queue == QUEUE and len(frame.message) == DIGEST
    return frame.message if is_question else None
