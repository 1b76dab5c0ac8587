"""The states of a receiving agent's session, and all its moves (rqp_cast.md 5).

WAIT_FOR_SENDER_STATE is not among them: that is the agent itself, always; each question it answers begins a session.
"""

import enum


class ReceiverState(enum.Enum):
    """The states of a session: the document's, which end in `_STATE` there, and two of ours."""

    WAIT_FOR_APPROVAL = "wait_for_approval"  # up to T_WAIT2 for ACCEPT_RECEIVER_MSG (5.1)
    WAIT_FOR_MESSAGE = "wait_for_message"  # up to T_WAIT3 from then for the whole DATA_MSG (5.1)
    INSERTING = "inserting"  # it is whole, and the store has been asked (5.5)
    END = "end"  # nothing is open any more


class ReceiverMove(enum.Enum):
    """The events that move a session; the values are the texts of the diagram."""

    APPROVED = "ACCEPT_RECEIVER_MSG"
    WHOLE = "DATA_MSG / insert"
    DAMAGED = "DATA_MSG damaged / bury, FAILURE"
    INSERTED = "outcome / SUCCESS or FAILURE"
    LOST = "connection lost"
    TIME_OUT = "time-out"


RECEIVER_TRANSITIONS: dict[ReceiverState, dict[ReceiverMove, ReceiverState]] = {
    ReceiverState.WAIT_FOR_APPROVAL: {
        ReceiverMove.APPROVED: ReceiverState.WAIT_FOR_MESSAGE,
        ReceiverMove.LOST: ReceiverState.END,
        ReceiverMove.TIME_OUT: ReceiverState.END,
    },
    ReceiverState.WAIT_FOR_MESSAGE: {
        ReceiverMove.WHOLE: ReceiverState.INSERTING,
        ReceiverMove.DAMAGED: ReceiverState.END,  # also when time or connection end in its middle
        ReceiverMove.LOST: ReceiverState.END,  # before its first octet
        ReceiverMove.TIME_OUT: ReceiverState.END,  # before its first octet
    },
    ReceiverState.INSERTING: {ReceiverMove.INSERTED: ReceiverState.END},
    ReceiverState.END: {},
}
"""The states of a session, and where each move leads (5)."""
