"""The subset of AMQP 0-9-1 for a benchmark: the greeting, a queue, confirms, one consumer."""

from __future__ import annotations

import socket
import struct

from benchmarks.peers.peer import read_until

METHOD, HEADER, BODY_FRAME = 1, 2, 3
FRAME_END = b"\xce"
FRAME = struct.Struct(">BHI")  # type, channel, payload size
CHANNEL = 1
PERSISTENT = 2

CONNECTION_START_OK, CONNECTION_TUNE_OK, CONNECTION_OPEN = (10, 11), (10, 31), (10, 40)
CONNECTION_START, CONNECTION_TUNE, CONNECTION_OPEN_OK = (10, 10), (10, 30), (10, 41)
CHANNEL_OPEN, CHANNEL_OPEN_OK = (20, 10), (20, 11)
QUEUE_DECLARE, QUEUE_DECLARE_OK, QUEUE_DELETE, QUEUE_DELETE_OK = (50, 10), (50, 11), (50, 40), (50, 41)
BASIC_QOS, BASIC_QOS_OK, BASIC_CONSUME, BASIC_PUBLISH = (60, 10), (60, 11), (60, 20), (60, 40)
CONFIRM_SELECT, CONFIRM_SELECT_OK = (85, 10), (85, 11)

Method = tuple[int, int]


def short(text: str) -> bytes:
    return bytes([len(text)]) + text.encode()


def long(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def encode_frame(kind: int, channel: int, payload: bytes) -> bytes:
    return FRAME.pack(kind, channel, len(payload)) + payload + FRAME_END


def encode_method(channel: int, method: Method, arguments: bytes = b"") -> bytes:
    return encode_frame(METHOD, channel, struct.pack(">HH", *method) + arguments)


def encode_publish(queue: str, body: bytes) -> bytes:
    """Encode basic.publish to the default exchange, persistent: three frames."""
    method = encode_method(CHANNEL, BASIC_PUBLISH, struct.pack(">H", 0) + short("") + short(queue) + b"\0")
    properties = struct.pack(">HHQHB", 60, 0, len(body), 1 << 12, PERSISTENT)  # the flag of delivery-mode
    return method + encode_frame(HEADER, CHANNEL, properties) + encode_frame(BODY_FRAME, CHANNEL, body)


def encode_consume(queue: str) -> bytes:
    return encode_method(
        CHANNEL, BASIC_CONSUME, struct.pack(">H", 0) + short(queue) + short("t") + b"\0" + long(b"")
    )


def call(sock: socket.socket, request: bytes, expected: Method) -> bytes:
    """Send, wait for one method frame and return its arguments. Raises OSError on any other answer."""
    sock.sendall(request)
    data = read_until(sock, lambda data: len(data) > 7 and len(data) >= FRAME.unpack_from(data)[2] + 8)
    method = struct.unpack_from(">HH", data, 7)
    if method != expected:
        raise OSError(f"RabbitMQ answered {method} with {data[11:120]!r} where {expected} was due")
    return data[11:-1]


def greet(sock: socket.socket) -> None:
    """Log in as guest, open the virtual host and one channel; heartbeats off."""
    call(sock, b"AMQP\0\0\x09\x01", CONNECTION_START)
    login = long(b"") + short("PLAIN") + long(b"\0guest\0guest") + short("en_US")
    tune = call(sock, encode_method(0, CONNECTION_START_OK, login), CONNECTION_TUNE)
    channels, frame_bytes, _heartbeat = struct.unpack(">HIH", tune)
    sock.sendall(encode_method(0, CONNECTION_TUNE_OK, struct.pack(">HIH", channels, frame_bytes, 0)))
    call(sock, encode_method(0, CONNECTION_OPEN, short("/") + short("") + b"\0"), CONNECTION_OPEN_OK)
    call(sock, encode_method(CHANNEL, CHANNEL_OPEN, short("")), CHANNEL_OPEN_OK)


def declare_quorum_queue(sock: socket.socket, queue: str) -> None:
    arguments = long(short("x-queue-type") + b"S" + long(b"quorum"))
    durable = b"\x02"
    declare = struct.pack(">H", 0) + short(queue) + durable + arguments
    call(sock, encode_method(CHANNEL, QUEUE_DECLARE, declare), QUEUE_DECLARE_OK)


def delete_queue(sock: socket.socket, queue: str) -> None:
    delete = struct.pack(">H", 0) + short(queue) + b"\0"
    call(sock, encode_method(CHANNEL, QUEUE_DELETE, delete), QUEUE_DELETE_OK)


def select_confirms(sock: socket.socket) -> None:
    call(sock, encode_method(CHANNEL, CONFIRM_SELECT, b"\0"), CONFIRM_SELECT_OK)


def set_prefetch(sock: socket.socket, messages: int) -> None:
    call(sock, encode_method(CHANNEL, BASIC_QOS, struct.pack(">IHB", 0, messages, 0)), BASIC_QOS_OK)
