"""Decisions about a USER payload that came around the ring (ring.md 5.3 to 5.5, 5.7).

A payload is forwarded unchanged, with its `questions`, if any, directly before and behind it. What is carried out or
taken off here is not forwarded.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from protos.ring.frames import Frame
from protos.ring.ownerless_messages import NOTHING, Questions


class DropReason(enum.Enum):
    """Why a payload leaves the ring here without effect; the values are metric labels."""

    SEEN = "seen"  # its second pass (5.5)
    # this node's settlement: no node knows its id, the lease runs out (5.4)
    NOBODY_HOLDS_IT = "nobody_holds_it"
    NOT_MINE = "not_mine"  # in this node's name, but without a request id, which all its frames have
    LAPS = "laps"  # it keeps going around and no node claims it (5.7)
    CLAIMED = "claimed"  # a question about this node's own message, which takes that off itself (5.7)
    NOBODY_CLAIMS = "nobody_claims"  # this node's question: no node took it off (5.7)
    MARK = "mark"  # this node's mark: all messages before it have come back or were kept (5.5)


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply to this node: give it to the client that waits for it; without one, drop it unsettled (5.3)."""

    frame: Frame  # the reply


@dataclass(frozen=True, slots=True)
class CameBack:
    """This node's own request, unserved: `no node serves this queue`, if a client still waits for it (5.3)."""

    frame: Frame  # the request


@dataclass(frozen=True, slots=True)
class Request:
    """Another node's request: carry it out and send the reply if the queue is here, else forward it (5.3).

    `again`: it was carried out here before. Ask the store again by the request id: it has the reply, even if the queue
    is gone (5.4).
    """

    frame: Frame  # the request
    questions: Questions = NOTHING  # to forward with it
    again: bool = False  # True if it was carried out here before


@dataclass(frozen=True, slots=True)
class Settle:
    """Another node's settlement: settle if its id is known here, else forward it (5.4)."""

    frame: Frame  # the settlement


@dataclass(frozen=True, slots=True)
class PassOn:
    """A reply for another node (5.3)."""

    frame: Frame  # the reply
    questions: Questions = NOTHING  # to forward with it


@dataclass(frozen=True, slots=True)
class Deliver:
    """Not a queue operation: put it into the inbox, if one is bound; forward it if `forward_user` is set (5.5)."""

    payload: bytes  # of the USER, unchanged
    questions: Questions = NOTHING  # to forward with it


@dataclass(frozen=True, slots=True)
class TakenOff:
    """This node's own message has gone around: nothing more to do (5.5)."""


@dataclass(frozen=True, slots=True)
class Drop:
    """Answer with `A` and count it by the label; nothing else."""

    why: DropReason  # the label to count it by


Route = Answer | CameBack | Request | Settle | PassOn | Deliver | TakenOff | Drop  # decisions of a `Relay`
