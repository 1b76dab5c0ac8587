"""RQP/MCA, remote queues between message channel agents, as `protos/rqp_mca.md` numbers it.

On the wire: `wire` has numbers and limits, `layouts` are the three profiles, `events` are what a connection yields,
`readers` parse messages, `connection` keeps one connection's state, for either side, `messages` encodes.

The sending side: `transitions` is the table of its states, `machine` enforces it, `sender` decides, with `search`
(which receivers have the queue), `pending` (what waits) and `times`; `actions` is what it wants done. The receiving
side has one state, and the store decides what it answers.

What it must not know: which queues there are, which receivers hold them, where messages wait, how peers are reached.
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
