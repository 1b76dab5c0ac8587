"""What is to be done with a USER payload that came round the ring (ring.md 5.3 to 5.5, 5.7).

What is passed on is the payload as it came, with the questions `around` it, if there are any, directly before and
behind it. What is carried out or taken off here is not passed on.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from protos.ring.frames import Frame
from protos.ring.laps import NOTHING, Questions


class DropReason(enum.Enum):
    """DropReason a payload leaves the ring here with nothing done; the values are labels for metrics."""

    SEEN = "seen"  # its second pass (5.5)
    NOBODY_HOLDS_IT = "nobody_holds_it"  # my own settlement: no node knows its id, the lease runs out (5.4)
    NOT_MINE = "not_mine"  # in my name, but without a request id, which all that I send has
    LAPS = "laps"  # it went round again and again, and nobody claims it (5.7)
    CLAIMED = "claimed"  # somebody's question about what I put on: it is not lost, I take it off myself (5.7)
    NOBODY_CLAIMS = "nobody_claims"  # my own question: nobody took it off (5.7)
    MARK = "mark"  # my own mark: what I put on before it has come back, or was kept (5.5)


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply to me: hand it to who asked for its id; drop it unsettled if nobody does any more (5.3)."""

    frame: Frame


@dataclass(frozen=True, slots=True)
class CameBack:
    """My own request, unserved: `no node serves this queue`, if it is still awaited (5.3)."""

    frame: Frame


@dataclass(frozen=True, slots=True)
class Request:
    """Somebody's request: carry it out and send the reply on if the queue is here, else pass it on (5.3).

    `again`: it was carried out here before. Whatever became of the queue, ask the store again, by the request id: it
    has the reply (5.4).
    """

    frame: Frame
    questions: Questions = NOTHING
    again: bool = False


@dataclass(frozen=True, slots=True)
class Settle:
    """Somebody's settlement: settle if its id is known here, else pass it on (5.4)."""

    frame: Frame


@dataclass(frozen=True, slots=True)
class PassOn:
    """Somebody's reply, for another node (5.3)."""

    frame: Frame
    questions: Questions = NOTHING


@dataclass(frozen=True, slots=True)
class Deliver:
    """No queue operation: into the inbox, if one is bound, and passed on if `forward_user` is set (5.5)."""

    payload: bytes
    questions: Questions = NOTHING


@dataclass(frozen=True, slots=True)
class TakenOff:
    """What we put on the ring has gone round: that is all (5.5)."""


@dataclass(frozen=True, slots=True)
class Drop:
    """Answered by `A`, counted by the label, and nothing else."""

    why: DropReason


Route = Answer | CameBack | Request | Settle | PassOn | Deliver | TakenOff | Drop
