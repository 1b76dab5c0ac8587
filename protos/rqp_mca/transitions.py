"""The sending MCA's states and moves as a table (rqp_mca.md 3): `Sender` makes no other moves."""

from enum import Enum


class State(Enum):
    """The states of a sending MCA; the values are the document's names."""

    IDLE = "SENDER_IDLE_STATE"  # nothing to send, or about to send it
    AWAITING_QUEUE_REQUEST = "SENDER_AWAITING_QUEUE_REQUEST_STATE"  # all receivers are asked for the queue
    AWAITING_QUEUE = "SENDER_AWAITING_QUEUE_STATE"  # a receiver that has it is asked to reserve it
    AWAITING_MESSAGE = "SENDER_AWAITING_MESSAGE_STATE"  # RELIABLE messages are out, unconfirmed
    STOPPED = "SENDER_STOPPED_STATE"  # a pause after a reported error: ours, not the document's (3.1)


class Move(Enum):
    """The events that move a sending MCA; the values are the labels of the diagram."""

    ASKED = "no receiver known, !MSG_QUEUE_AVAILABLE_REQUEST to all"
    ASKED_NEWCOMER = "a peer is new, !MSG_QUEUE_AVAILABLE_REQUEST to it"
    AVAILABLE = "?MSG_QUEUE_AVAILABLE_CONFIRM, a candidate"
    PEER_GONE = "another peer is gone, and is no candidate"
    ASKED_ENOUGH = "candidates, and time-out or no peer left to answer, !MSG_QUEUE_REQUEST to the first"
    CANDIDATE_FAILED = "time-out or connection lost, !MSG_QUEUE_REQUEST to the next"
    RESERVED_RELIABLE = "?MSG_QUEUE_CONFIRM for a RELIABLE message"
    RESERVED_UNRELIABLE = "?MSG_QUEUE_CONFIRM for an UNRELIABLE message"
    NOBODY_RELIABLE = "no candidate (left) for a RELIABLE message, error"
    NOBODY_UNRELIABLE = "no candidate (left) for an UNRELIABLE message, to DEAD_LETTER_Q"
    SENT_RELIABLE = "receiver known, !MSG_DATA (RELIABLE)"
    SENT_UNRELIABLE = "receiver known, !MSG_DATA (UNRELIABLE), removed"
    CONFIRMED_SOME = "?MSG_DATA_CONFIRM, removed, others are still out"
    CONFIRMED_ALL = "?MSG_DATA_CONFIRM, removed"
    FAILED = "time-out or connection lost, !MSG_QUEUE_AVAILABLE_REQUEST to all"
    FAILED_AGAIN = "time-out or connection lost, not the first failure in a row, error"
    WITHDRAWN = "all messages are taken back"
    PAUSED_ENOUGH = "the pause is over, or a peer is new"


TRANSITIONS: dict[State, dict[Move, State]] = {
    State.IDLE: {
        Move.SENT_RELIABLE: State.AWAITING_MESSAGE,
        Move.SENT_UNRELIABLE: State.IDLE,
        Move.ASKED: State.AWAITING_QUEUE_REQUEST,
    },
    State.AWAITING_QUEUE_REQUEST: {
        Move.AVAILABLE: State.AWAITING_QUEUE_REQUEST,
        Move.ASKED_NEWCOMER: State.AWAITING_QUEUE_REQUEST,
        Move.PEER_GONE: State.AWAITING_QUEUE_REQUEST,
        Move.ASKED_ENOUGH: State.AWAITING_QUEUE,
        Move.NOBODY_RELIABLE: State.STOPPED,
        Move.NOBODY_UNRELIABLE: State.IDLE,
        Move.WITHDRAWN: State.IDLE,
    },
    State.AWAITING_QUEUE: {
        Move.PEER_GONE: State.AWAITING_QUEUE,
        Move.CANDIDATE_FAILED: State.AWAITING_QUEUE,
        Move.RESERVED_RELIABLE: State.AWAITING_MESSAGE,
        Move.RESERVED_UNRELIABLE: State.IDLE,
        Move.NOBODY_RELIABLE: State.STOPPED,
        Move.NOBODY_UNRELIABLE: State.IDLE,
        Move.WITHDRAWN: State.IDLE,
    },
    State.AWAITING_MESSAGE: {
        Move.SENT_RELIABLE: State.AWAITING_MESSAGE,  # while the window has room (3.3)
        Move.CONFIRMED_SOME: State.AWAITING_MESSAGE,
        Move.CONFIRMED_ALL: State.IDLE,
        Move.FAILED: State.AWAITING_QUEUE_REQUEST,
        Move.FAILED_AGAIN: State.STOPPED,
        Move.WITHDRAWN: State.IDLE,
    },
    State.STOPPED: {
        Move.PAUSED_ENOUGH: State.IDLE,
        Move.WITHDRAWN: State.IDLE,
    },
}
"""The states of a sending agent, and where each move leads (3)."""
