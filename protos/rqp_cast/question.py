"""Check the sender of a question or an answer, and name the reasons for not answering (rqp_cast.md 1.1, 2.2, 3.2)."""

import enum

from protos.rqp_cast.codec import parse_question
from protos.rqp_cast.messages import QuestionMsg
from protos.types import PeerError


class Unanswered(enum.Enum):
    """Why a question gets no answer; the values are metric labels."""

    BAD_SIZE = "bad_size"  # not a QUESTION_MSG
    FOREIGN_ADDRESS = "foreign_address"  # it names another machine than the one it came from (2.2)
    UNKNOWN_KEY = "unknown_key"  # no queue has this key
    ACCESS_DENIED = "access_denied"  # the queue is not for this machine (3.2)
    REMOTE = "remote"  # the queue is itself sent elsewhere (3.2)
    RESERVED = "reserved"  # by another session, perhaps of another replica
    ANSWERED = "answered"  # by another replica, whose session is over by now (3.2)
    LATE = "late"  # it was read so late that its sender waits no more (3.1)
    PORTS_USED_UP = "ports_used_up"  # every port of the range is in use or resting (1.2)
    UNAVAILABLE = "unavailable"  # the store is unavailable, or refuses


def judge_question(data: bytes, source: str, trust_address: bool) -> QuestionMsg:
    """Parse a question that came from `source`. PeerError `bad_size`, `foreign_address` (2.2).

    The answer always goes to `source`.
    """
    question = parse_question(data)
    if question.address != source and not trust_address:
        raise PeerError(Unanswered.FOREIGN_ADDRESS.value, f"it names {question.address}")
    return question


def agent_of(address: str | None, source: str, trust_address: bool) -> str:
    """Return the sending agent of a connection: its field `address` if that is trusted, else `source` (2.2)."""
    return address if trust_address and address is not None else source
