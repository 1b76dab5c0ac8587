"""The states of a sending agent, for one key, and all its moves (rqp_cast.md 4)."""

import enum


class SenderState(enum.Enum):
    """The states of sending for one key. Those of the document end in `_STATE` there."""

    IDLE = "idle"  # the next message may be sent
    WAIT_FOR_RECEIVER = "wait_for_receiver"  # asked; up to T_WAIT1 (4.1)
    APPROVING = "approving"  # an answer was taken; ACCEPT_RECEIVER_MSG is on its way (3.3)
    CONNECTING = "connecting"  # approved; no octet of DATA_MSG has left (3.4)
    SENDING = "sending"  # DATA_MSG is on its way; its last octet has not left
    WAIT_FOR_CONFIRMATION = "wait_for_confirmation"  # certain and whole; T_WAIT4 from listening on (4.2)
    BROKEN_OFF = "broken_off"  # certain, and cut short: an END_TRANSMISSION_MSG may still say why (4.2)
    PAUSING = "pausing"  # the attempt is over, and the next one may not begin yet (4.1)


class SenderMove(enum.Enum):
    """The events that move it; the values are the texts of the diagram."""

    MESSAGE = "a message to send / ask"
    TOO_OLD = "a message too old to repeat / hold"
    ANSWER = "ACCEPT_SENDER_MSG / approve"
    APPROVED = "ACCEPT_RECEIVER_MSG sent / send the data"
    BEGUN = "first octet leaves"
    SENT_CERTAIN = "last octet left, HIGH_QUALITY"
    SENT_UNCERTAIN = "last octet left, LOW_QUALITY / done"
    SUCCESS = "SUCCESS / remove"
    FAILURE = "FAILURE / to the end or dead"
    FAILED = "connection failed / back or to the end"
    BROKEN = "connection failed, HIGH_QUALITY"
    UNEXPLAINED = "nothing says why / to the end"
    TIME_OUT = "time-out / back or to the end"
    RESTED = "pause over"


SENDER_TRANSITIONS: dict[SenderState, dict[SenderMove, SenderState]] = {
    SenderState.IDLE: {
        SenderMove.MESSAGE: SenderState.WAIT_FOR_RECEIVER,
        SenderMove.TOO_OLD: SenderState.IDLE,
    },
    SenderState.WAIT_FOR_RECEIVER: {
        SenderMove.ANSWER: SenderState.APPROVING,
        SenderMove.TIME_OUT: SenderState.PAUSING,
    },
    SenderState.APPROVING: {
        SenderMove.APPROVED: SenderState.CONNECTING,
        SenderMove.FAILED: SenderState.PAUSING,
        SenderMove.TIME_OUT: SenderState.PAUSING,
    },
    SenderState.CONNECTING: {
        SenderMove.BEGUN: SenderState.SENDING,
        SenderMove.FAILED: SenderState.PAUSING,
        SenderMove.TIME_OUT: SenderState.PAUSING,
    },
    SenderState.SENDING: {
        SenderMove.SENT_CERTAIN: SenderState.WAIT_FOR_CONFIRMATION,
        SenderMove.SENT_UNCERTAIN: SenderState.PAUSING,
        SenderMove.SUCCESS: SenderState.PAUSING,  # the answer may come before our kernel reports that all was sent
        SenderMove.FAILURE: SenderState.PAUSING,  # the receiver refuses early, for example because of the size
        SenderMove.FAILED: SenderState.PAUSING,
        SenderMove.BROKEN: SenderState.BROKEN_OFF,
        SenderMove.TIME_OUT: SenderState.PAUSING,
    },
    SenderState.WAIT_FOR_CONFIRMATION: {
        SenderMove.SUCCESS: SenderState.PAUSING,
        SenderMove.FAILURE: SenderState.PAUSING,
        SenderMove.TIME_OUT: SenderState.PAUSING,
    },
    SenderState.BROKEN_OFF: {
        SenderMove.SUCCESS: SenderState.PAUSING,
        SenderMove.FAILURE: SenderState.PAUSING,
        SenderMove.UNEXPLAINED: SenderState.PAUSING,
    },
    SenderState.PAUSING: {SenderMove.RESTED: SenderState.IDLE},
}
"""The states of a sending agent, and where each move leads (4)."""
