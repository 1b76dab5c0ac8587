"""RQP/MCA, remote queues between message channel agents, as `protos/rqp_mca.md` numbers it.

On the wire: `wire` is what it counts with, `layouts` are the three profiles, `events` is what a connection hands out,
`readers` turn bytes into events, `connection` keeps one connection's state, for either side, `messages` are the bytes.

The sending side: `transitions` is the table of its states, `machine` holds to it, `sender` decides, with `search` (who
has the queue), `line` (what waits) and `times`; `actions` is what it wants done. The receiving side has one state, and
the store decides what it answers.

What it must not know: which queues there are, who holds them, where messages wait, how peers are reached.
"""

from protos.rqp_mca.actions import (
    Action,
    AskAvailability,
    Close,
    Failure,
    Peer,
    Remove,
    ReportFailure,
    RequestQueue,
    SendData,
    ToDeadLetters,
)
from protos.rqp_mca.connection import ReceiverConnection, SenderConnection
from protos.rqp_mca.events import (
    AvailableConfirm,
    AvailableRequest,
    Confirm,
    Data,
    DataConfirm,
    QueueConfirm,
    QueueRequest,
    Request,
)
from protos.rqp_mca.messages import (
    encode_available_confirm,
    encode_available_request,
    encode_data,
    encode_data_confirm,
    encode_message,
    encode_queue_confirm,
    encode_queue_request,
)
from protos.rqp_mca.sender import Sender
from protos.rqp_mca.times import SenderSettings
from protos.rqp_mca.transitions import TRANSITIONS, Move, State
from protos.rqp_mca.wire import MAX_U32, RQP_PORT, Limits, MessageId, MessageType, Profile
from protos.runs import MAX_RUN, encode_record

__all__ = [
    "MAX_RUN",
    "MAX_U32",
    "RQP_PORT",
    "TRANSITIONS",
    "Action",
    "AskAvailability",
    "AvailableConfirm",
    "AvailableRequest",
    "Close",
    "Confirm",
    "Data",
    "DataConfirm",
    "Failure",
    "Limits",
    "MessageId",
    "MessageType",
    "Move",
    "Peer",
    "Profile",
    "QueueConfirm",
    "QueueRequest",
    "ReceiverConnection",
    "Remove",
    "ReportFailure",
    "Request",
    "RequestQueue",
    "SendData",
    "Sender",
    "SenderConnection",
    "SenderSettings",
    "State",
    "ToDeadLetters",
    "encode_available_confirm",
    "encode_available_request",
    "encode_data",
    "encode_data_confirm",
    "encode_message",
    "encode_queue_confirm",
    "encode_queue_request",
    "encode_record",
]
