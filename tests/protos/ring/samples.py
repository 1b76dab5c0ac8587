"""Helpers of the tests of the ring's octets: the vectors, their meaning, and ways to feed a connection."""

import json
from collections.abc import Iterable
from pathlib import Path

from protos.ring import (
    HEAD_BYTES,
    MAX_LOOP,
    NO_ID,
    BreakLinkForced,
    ClientConnection,
    ClientEvent,
    ClientRequest,
    Connection,
    Create,
    Destroy,
    Find,
    Frame,
    Leader,
    Limits,
    LinkBroken,
    Message,
    Open,
    Operation,
    Pull,
    Push,
    Unusable,
    User,
    echo_of,
    encode_record,
)
from tests.protos.feeding import feed

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "ring.json").read_text())
TIGHT = Limits(max_message_bytes=40, max_discard_bytes=400)
PATIENT = Limits(request_timeout_s=32.0)  # exact in binary: sums can be compared
ORDERS = echo_of(b"checkin", b"orders")
BILLS = echo_of(b"checkin", b"bills")
LARGEST_MESSAGE = 6 + MAX_LOOP  # octets on a link


def vectors(direction: str, error: bool = False) -> list[dict]:
    """Return the vectors of one direction: the good ones, or those that must be refused."""
    return [
        vector
        for vector in VECTORS
        if vector["direction"] == direction and ("error" in vector["fields"]) == error
    ]


def wire_of(vector: dict) -> bytes:
    return bytes.fromhex(vector["wire"])


def name(vector: dict) -> str:
    return vector["name"]


def message_of(fields: dict, wire: bytes) -> Message:
    """Return the message of a link's vector; for a frame only that it is a USER."""
    match fields["message"]:
        case "Leader":
            return Leader(fields["node"].encode(), fields["ttl"])
        case "LinkBroken":
            return LinkBroken(fields["node"].encode(), fields["ttl"])
        case "BreakLinkForced":
            return BreakLinkForced(fields["ttl"])
        case "unusable":
            return Unusable(fields["reason"], fields["ttl"])
        case _:
            return User(bytes.fromhex(fields["payload"]) if "payload" in fields else wire[6:])


def frame_of(fields: dict, payload: bytes) -> Frame:
    """Return the frame of a vector in the ring; the document's own have no request id."""
    body = bytes.fromhex(fields["body"]) if "body" in fields else payload[HEAD_BYTES:]
    request_id = bytes.fromhex(fields.get("request_id", NO_ID.hex()))
    sender, queue = fields["sender"].encode(), fields["queue"].encode()
    settles = fields.get("settles", False)
    return Frame(Operation[fields["operation"].upper()], sender, queue, body, request_id, settles)


def beacon_of(fields: dict) -> Open | Find:
    names = [fields[each].encode() for each in ("leader", "node", "service") if each in fields]
    return (Open if fields["message"] == "OPEN" else Find)(fields["group"], *names)


def request_of(fields: dict, wire: bytes) -> ClientRequest:
    """Return the request of a client port's vector, with its fields unchanged."""
    echo, queue = wire[4 : HEAD_BYTES - 4], fields["queue"].encode()
    match fields["operation"]:
        case "create_queue":
            return Create(echo, queue)
        case "destroy_queue":
            return Destroy(echo, queue)
        case "pull":
            return Pull(echo, queue, 1)
        case _:
            return Push(echo, queue, [encode_record(bytes.fromhex(fields["message"]))])


def pushes(*bodies: bytes, echo: bytes = ORDERS, queue: bytes = b"orders") -> Push:
    return Push(echo, queue, [encode_record(body) for body in bodies])


def linked(chunks: Iterable[bytes], limits: Limits | None = None) -> tuple[list[Message], str | None]:
    """Return the messages of a link's octets, and the reason of the PeerError at their end."""
    return feed(Connection(limits or Limits()), chunks)


def asked(chunks: Iterable[bytes], limits: Limits | None = None) -> tuple[list[ClientEvent], str | None]:
    """Return the result of `linked` on the client port, runs merged."""
    events, reason = feed(ClientConnection(limits or Limits()), chunks)
    return merged(events), reason


def merged(events: Iterable[ClientEvent]) -> list[ClientEvent]:
    """Merge runs: only their boundaries may depend on the chunks."""
    result: list[ClientEvent] = []
    for event in events:
        match result[-1] if result else None, event:
            case Push(echo, queue, before), Push(other, _, records) if echo == other:
                result[-1] = Push(echo, queue, before + records)
            case Pull(echo, queue, before), Pull(other, _, count) if echo == other:
                result[-1] = Pull(echo, queue, before + count)
            case _:
                result.append(event)
    return result
