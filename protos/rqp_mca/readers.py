"""Parse messages: one function for each shape, and which of them each side reads.

A reader is pure. It gets the input, where a message begins in it, the profile's layout and the limits, and returns
- (event, where the next message begins), or
- (None, how many bytes the message needs at least before it is worth reading again);
or it raises PeerError. No reader reads, or keeps, more than the head of a message before its length has been checked.
"""

from collections.abc import Callable
from typing import TypeVar

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
from protos.rqp_mca.layouts import Layout
from protos.rqp_mca.wire import MAX_UINT4, Limits, MessageId, MessageType
from protos.runs import U32, count_run, read_records
from protos.types import PeerError

EventT = TypeVar("EventT")
Reader = Callable[[bytes, int, Layout, Limits], tuple[EventT | None, int]]
Readers = dict[MessageId, Reader[EventT]]


def message_id(number: int) -> MessageId:
    """Return the message of this number. PeerError `unknown_message` or `bad_uint4`."""
    if not 1 <= number <= len(MessageId):
        raise _no_such("unknown_message", number)
    return MessageId(number)


def read_data(data: bytes, start: int, layout: Layout, limits: Limits) -> tuple[Data | None, int]:
    """Read a run of MSG_DATAs of one queue and type: prefix, u32 body_length, body (1.5).

    What ends the run (another message, a bad length, missing bytes) is read next time.
    """
    if len(data) - start < layout.head_bytes:
        return None, layout.head_bytes
    queue_id, kind = layout.split_prefix(data, start)
    if kind > MessageType.UNRELIABLE:
        raise _no_such("bad_type", kind)
    prefix = data[start : start + layout.prefix_bytes]
    records, end = read_records(data, start, prefix, limits.max_message_bytes)
    if records:
        return Data(queue_id, MessageType(kind), records), end
    (size,) = U32.unpack_from(data, start + layout.prefix_bytes)
    if size > limits.max_message_bytes:
        raise PeerError("message_too_large", f"{size} octets for queue {queue_id}")  # 2.4
    return None, layout.head_bytes + size


def read_data_confirms(
    data: bytes, start: int, layout: Layout, limits: Limits
) -> tuple[DataConfirm | None, int]:
    """Read a run of MSG_DATA_CONFIRMs."""
    size = layout.message_bytes
    if len(data) - start < size:
        return None, size
    message = layout.encode_message(MessageId.DATA_CONFIRM)
    if not data.startswith(message, start):
        raise PeerError("bad_padding", f"0x{data[start]:02x}")  # the number is right
    count = count_run(data, start, message)
    return DataConfirm(count), start + count * size


def _of_queue(event: Callable[[int], EventT]) -> Reader[EventT]:
    """Return the reader of a MSG_QUEUE_T that means `event`."""

    def read(data: bytes, start: int, layout: Layout, limits: Limits) -> tuple[EventT | None, int]:
        end = start + layout.queue_bytes
        if len(data) < end:
            return None, layout.queue_bytes
        queue_id, padding = layout.split_queue(data, start)
        if padding:
            raise PeerError("bad_padding", f"0x{data[end - 1]:02x}")
        return event(queue_id), end

    return read


def _no_such(reason: str, number: int) -> PeerError:
    """Return the error for an invalid number, which in the wider profiles may not even be a uint4 (1.2)."""
    return PeerError("bad_uint4" if number > MAX_UINT4 else reason, f"0x{number:02x}")


TO_RECEIVER: Readers[Request] = {
    MessageId.DATA: read_data,
    MessageId.QUEUE_AVAILABLE_REQUEST: _of_queue(AvailableRequest),
    MessageId.QUEUE_REQUEST: _of_queue(QueueRequest),
}
TO_SENDER: Readers[Confirm] = {
    MessageId.DATA_CONFIRM: read_data_confirms,
    MessageId.QUEUE_AVAILABLE_CONFIRM: _of_queue(AvailableConfirm),
    MessageId.QUEUE_CONFIRM: _of_queue(QueueConfirm),
}
