"""Helpers of the RQP/MCA tests: the vectors, and ways to feed a connection and compare its events."""

import json
from collections.abc import Iterable
from pathlib import Path

from protos.rqp_mca import (
    AvailableConfirm,
    AvailableRequest,
    Confirm,
    Data,
    DataConfirm,
    Limits,
    MessageType,
    Profile,
    QueueConfirm,
    QueueRequest,
    ReceiverConnection,
    Request,
    SenderConnection,
    encode_record,
)
from tests.protos.feeding import feed

Source = ReceiverConnection | SenderConnection
Event = Request | Confirm

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "rqp-mca.json").read_text())
GOOD = [vector for vector in VECTORS if "error" not in vector["fields"]]
BAD = [vector for vector in VECTORS if "error" in vector["fields"]]
TIGHT = Limits(max_message_bytes=40)
PATIENT = Limits(request_timeout_s=32.0)  # exact in binary: sums can be compared
LATE = (b"\x20", b"\x02", b"\xff", b"\x30\0\0\0\0", b"\0")  # valid and invalid: none of it may count
HEAD_BYTES = {Profile.PACKED: 9, Profile.OCTET: 10, Profile.WORD: 16}  # of a MSG_DATA (1.2)

_OF_QUEUE = {
    "MSG_QUEUE_AVAILABLE_REQUEST": AvailableRequest,
    "MSG_QUEUE_AVAILABLE_CONFIRM": AvailableConfirm,
    "MSG_QUEUE_REQUEST": QueueRequest,
    "MSG_QUEUE_CONFIRM": QueueConfirm,
}


def event_of(fields: dict) -> Event:
    """Return the meaning of a vector."""
    match fields["message"]:
        case "MSG_DATA":
            record = encode_record(bytes.fromhex(fields["body"]))
            return Data(fields["queue_id"], MessageType(fields["type"]), [record])
        case "MSG_DATA_CONFIRM":
            return DataConfirm(1)
        case message:
            return _OF_QUEUE[message](fields["queue_id"])


def profile_of(vector: dict) -> Profile:
    return Profile(vector["fields"].get("profile", "packed"))


def source_of(vector: dict, limits: Limits | None = None) -> Source:
    """Return a fresh connection of the side that a vector is sent to."""
    if vector["direction"] == "to receiver":
        return ReceiverConnection(limits or Limits())
    return SenderConnection(profile_of(vector), limits or Limits())


def data_run(queue_id: int, *bodies: bytes, kind: MessageType = MessageType.RELIABLE) -> Data:
    return Data(queue_id, kind, [encode_record(body) for body in bodies])


def outcome(source: Source, chunks: Iterable[bytes]) -> tuple[list[Event], str | None]:
    """Return the outcome of `feed`, runs merged."""
    events, reason = feed(source, chunks)
    return merged(events), reason


def merged(events: Iterable[Event]) -> list[Event]:
    """Merge runs: only their boundaries may depend on the chunks."""
    result: list[Event] = []
    for event in events:
        match result[-1] if result else None, event:
            case Data(queue_id, kind, before), Data(other, same, records) if (queue_id, kind) == (
                other,
                same,
            ):
                result[-1] = Data(queue_id, kind, before + records)
            case DataConfirm(before), DataConfirm(count):
                result[-1] = DataConfirm(before + count)
            case _:
                result.append(event)
    return result
