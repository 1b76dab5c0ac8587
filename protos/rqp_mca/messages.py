"""Encode messages in any profile (rqp_mca.md 1)."""

from typing import assert_never

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
from protos.rqp_mca.layouts import LAYOUTS
from protos.rqp_mca.wire import MAX_U32, MessageId, MessageType, Profile
from protos.runs import encode_record
from protos.types import LocalError


def encode_data(profile: Profile, queue_id: int, kind: MessageType, body: bytes) -> bytes:
    """Encode MSG_DATA; answered by MSG_DATA_CONFIRM if it is RELIABLE and inserted."""
    return _prefix(profile, queue_id, kind) + encode_record(body)


def encode_data_confirm(profile: Profile) -> bytes:
    """Encode MSG_DATA_CONFIRM."""
    return LAYOUTS[profile].encode_message(MessageId.DATA_CONFIRM)


def encode_available_request(profile: Profile, queue_id: int) -> bytes:
    """Encode MSG_QUEUE_AVAILABLE_REQUEST; answered by MSG_QUEUE_AVAILABLE_CONFIRM if it is available."""
    return _of_queue(profile, MessageId.QUEUE_AVAILABLE_REQUEST, queue_id)


def encode_available_confirm(profile: Profile, queue_id: int) -> bytes:
    """Encode MSG_QUEUE_AVAILABLE_CONFIRM."""
    return _of_queue(profile, MessageId.QUEUE_AVAILABLE_CONFIRM, queue_id)


def encode_queue_request(profile: Profile, queue_id: int) -> bytes:
    """Encode MSG_QUEUE_REQUEST; answered by MSG_QUEUE_CONFIRM if the queue has been assigned."""
    return _of_queue(profile, MessageId.QUEUE_REQUEST, queue_id)


def encode_queue_confirm(profile: Profile, queue_id: int) -> bytes:
    """Encode MSG_QUEUE_CONFIRM."""
    return _of_queue(profile, MessageId.QUEUE_CONFIRM, queue_id)


def encode_message(profile: Profile, message: Request | Confirm) -> bytes:
    """Encode any message; a run of n messages is n messages long."""
    match message:
        case Data(queue_id, kind, records):
            prefix = _prefix(profile, queue_id, kind)
            return b"".join(prefix + record for record in records)
        case DataConfirm(count):
            return encode_data_confirm(profile) * count
        case AvailableRequest(queue_id):
            return encode_available_request(profile, queue_id)
        case AvailableConfirm(queue_id):
            return encode_available_confirm(profile, queue_id)
        case QueueRequest(queue_id):
            return encode_queue_request(profile, queue_id)
        case QueueConfirm(queue_id):
            return encode_queue_confirm(profile, queue_id)
        case _:
            assert_never(message)


def _prefix(profile: Profile, queue_id: int, kind: MessageType) -> bytes:
    return LAYOUTS[profile].encode_prefix(MessageId.DATA, _checked(queue_id), kind)


def _of_queue(profile: Profile, message: MessageId, queue_id: int) -> bytes:
    return LAYOUTS[profile].encode_queue(message, _checked(queue_id))


def _checked(queue_id: int) -> int:
    """Return a queue_id. Raises LocalError unless it is a uint32: packed, it would spill into other fields."""
    if not 0 <= queue_id <= MAX_U32:
        raise LocalError(f"a queue_id is a uint32, not {queue_id}")
    return queue_id
