"""Events of a connection: one for a message, or for a run of like messages (rqp_mca.md 1.3)."""

from dataclasses import dataclass

from protos.rqp_mca.wire import MessageType


@dataclass(frozen=True, slots=True)
class Data:
    """1 to MAX_RUN consecutive MSG_DATAs of one queue and type.

    Each record is `u32 body_length, body`, exactly as sent.
    """

    queue_id: int  # u32
    kind: MessageType  # RELIABLE or UNRELIABLE
    records: list[bytes]  # `u32 body_length, body` each, exactly as sent


@dataclass(frozen=True, slots=True)
class DataConfirm:
    """`count` consecutive MSG_DATA_CONFIRMs, 1 to MAX_RUN; each confirms one RELIABLE MSG_DATA, in their order."""

    count: int  # 1 to MAX_RUN


@dataclass(frozen=True, slots=True)
class AvailableRequest:
    """MSG_QUEUE_AVAILABLE_REQUEST."""

    queue_id: int  # u32


@dataclass(frozen=True, slots=True)
class AvailableConfirm:
    """MSG_QUEUE_AVAILABLE_CONFIRM."""

    queue_id: int  # u32


@dataclass(frozen=True, slots=True)
class QueueRequest:
    """MSG_QUEUE_REQUEST."""

    queue_id: int  # u32


@dataclass(frozen=True, slots=True)
class QueueConfirm:
    """MSG_QUEUE_CONFIRM."""

    queue_id: int  # u32


Request = Data | AvailableRequest | QueueRequest  # what a receiving MCA is sent
Confirm = DataConfirm | AvailableConfirm | QueueConfirm  # what a sending MCA is sent
