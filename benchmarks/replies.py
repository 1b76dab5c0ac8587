"""Rules that count each peer's replies: the Python version of load/rules.c, for machines without a compiler.

A rule is given a connection and all unconsumed bytes, and returns how many of them it consumed.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Protocol

I32 = struct.Struct(">i")
RING_HEAD = struct.Struct(">I510xI")  # operation, copies of the request's fields, message size
RING_ERROR, RING_OK = 4, 5
FRAME = struct.Struct(">BHI")  # AMQP: type, channel, payload size; then the payload and 0xCE
METHOD_FRAME, HEADER_FRAME = 1, 2
FRAME_OVERHEAD, FRAME_END = 8, 0xCE
CONNECTION_CLOSE, CHANNEL_CLOSE = 10 << 16 | 50, 20 << 16 | 40
BASIC_DELIVER, BASIC_ACK, BASIC_NACK = 60 << 16 | 60, 60 << 16 | 80, 60 << 16 | 120


class BrokenReply(Exception):
    """The peer's answer is invalid, or ends the conversation."""


class Conversation(Protocol):
    """The interface of a connection for its rule."""

    ok: bytes
    ok_status: int
    half_pattern: int  # tmq-mixed: statuses, and then as many bodies
    phase: int
    tag: int
    delivering: int
    confirmed: set[int]

    def done(self, messages: int) -> None: ...
    def refused(self, messages: int) -> None: ...
    def empty(self) -> None: ...
    def emit(self, data: bytes) -> None: ...


Rule = Callable[[Conversation, bytes], int]


def tmq_put(c: Conversation, data: bytes) -> int:
    good = data.count(c.ok_status)
    c.done(good)
    c.refused(len(data) - good)
    return len(data)


def _sized_reply(c: Conversation, data: bytes, at: int) -> int:
    """Return the end of the reply that begins at `at`; `at` itself if it is incomplete."""
    if len(data) - at < I32.size:
        return at
    size: int = I32.unpack_from(data, at)[0]
    if size < 0:
        c.empty()
        return at + I32.size
    if len(data) - at < I32.size + size:
        return at
    c.done(1)
    return at + I32.size + size


def tmq_take(c: Conversation, data: bytes) -> int:
    at = 0
    while (end := _sized_reply(c, data, at)) > at:
        at = end
    return at


def tmq_mixed(c: Conversation, data: bytes) -> int:
    at = 0
    while at < len(data):
        is_status = c.phase < c.half_pattern
        end = at + tmq_put(c, data[at : at + 1]) if is_status else _sized_reply(c, data, at)
        if end == at:
            break
        at, c.phase = end, (c.phase + 1) % (2 * c.half_pattern)
    return at


def ring(c: Conversation, data: bytes) -> int:
    at = 0
    while len(data) - at >= RING_HEAD.size:
        operation, size = RING_HEAD.unpack_from(data, at)
        end = at + RING_HEAD.size + size
        if end > len(data):
            break
        if operation == RING_OK:
            c.done(1)
        elif operation != RING_ERROR:
            raise BrokenReply(f"the ring edge answered {operation}, neither OK nor ERROR")
        elif data[at + RING_HEAD.size : end] == b"empty":
            c.empty()
        else:
            c.refused(1)
        at = end
    return at


def line(c: Conversation, data: bytes) -> int:
    whole = data.rfind(b"\n") + 1
    lines = data[:whole].splitlines()
    good = sum(each.startswith(c.ok) for each in lines)
    c.done(good)
    c.refused(len(lines) - good)
    return whole


def resp(c: Conversation, data: bytes) -> int:
    at = 0
    while end := data.find(b"\n", at) + 1:
        if data[at] == ord("$"):
            end += int(data[at + 1 : end]) + 2
        if end > len(data):
            break
        c.refused(1) if data[at] == ord("-") else c.done(1)
        at = end
    return at


def beanstalkd_take(c: Conversation, data: bytes) -> int:
    at = 0
    while end := data.find(b"\n", at) + 1:
        words = data[at:end].split()
        if words[0] == b"RESERVED":
            end += int(words[2]) + 2
            if end > len(data):
                break
            c.emit(b"delete %s\r\n" % words[1])
        elif words[0] == b"DELETED":
            c.done(1)
        elif words[0] == b"TIMED_OUT":
            c.empty()
        else:
            raise BrokenReply("beanstalkd answered neither RESERVED nor DELETED")
        at = end
    return at


def nats(c: Conversation, data: bytes) -> int:
    at = 0
    while end := data.find(b"\n", at) + 1:
        words = data[at:end].split()
        if words[0] == b"MSG":
            body, end = end, end + int(words[-1]) + 2
            if end > len(data):
                break
            _on_nats_message(c, words, data[body:end])
        elif words[0] == b"PING":
            c.emit(b"PONG\r\n")
        elif words[0] in (b"HMSG", b"-ERR"):
            raise BrokenReply(f"NATS answered {words[0].decode()}")
        at = end
    return at


def nats_publish(c: Conversation, data: bytes) -> int:
    """Answer PINGs; core NATS sends no reply to PUB."""
    whole = data.rfind(b"\n") + 1
    for line in data[:whole].splitlines():
        if line.startswith(b"PING"):
            c.emit(b"PONG\r\n")
        elif line.startswith(b"-ERR"):
            raise BrokenReply("NATS answered -ERR")
    return whole


def _on_nats_message(c: Conversation, words: list[bytes], body: bytes) -> None:
    """Acknowledge MSG <subject> <sid> [<reply to>] <bytes>: a consumer's message has a reply subject for that."""
    if len(words) == 5:
        c.emit(b"PUB %s 4\r\n+ACK\r\n" % words[3])
        c.done(1)
    elif b'"error"' in body:
        c.refused(1)
    else:
        c.done(1)


def amqp(c: Conversation, data: bytes) -> int:
    at = 0
    while len(data) - at >= FRAME_OVERHEAD:
        kind, _channel, size = FRAME.unpack_from(data, at)
        end = at + size + FRAME_OVERHEAD
        if end > len(data):
            break
        if data[end - 1] != FRAME_END:
            raise BrokenReply("an AMQP frame without its end byte")
        payload = data[at + FRAME.size : end - 1]
        if kind == METHOD_FRAME:
            _on_amqp_method(c, payload)
        elif kind <= METHOD_FRAME + 2:
            _on_amqp_content(c, kind, payload)
        at = end
    return at


def _on_amqp_method(c: Conversation, payload: bytes) -> None:
    method = int.from_bytes(payload[:4])
    if method in (CONNECTION_CLOSE, CHANNEL_CLOSE, BASIC_NACK):
        raise BrokenReply(f"RabbitMQ closed or refused: {re.sub(rb'[^ -~]+', b' ', payload[4:]).decode()}")
    if method == BASIC_ACK:
        _confirm(c, int.from_bytes(payload[4:12]), multiple=bool(payload[12] & 1))
    if method == BASIC_DELIVER:
        start = 5 + payload[4]
        c.delivering = int.from_bytes(payload[start : start + 8])


def _confirm(c: Conversation, tag: int, *, multiple: bool) -> None:
    """Confirm one tag, or all up to it; single ones arrive in any order."""
    fresh = set(range(c.tag + 1 if multiple else tag, tag + 1)) - c.confirmed
    c.confirmed |= fresh
    while c.tag + 1 in c.confirmed:
        c.tag += 1
        c.confirmed.remove(c.tag)
    c.done(len(fresh))


def _on_amqp_content(c: Conversation, kind: int, payload: bytes) -> None:
    """Count body bytes down from the header's size; the message is complete at 0."""
    c.phase = int.from_bytes(payload[4:12]) if kind == HEADER_FRAME else c.phase - len(payload)
    if c.phase == 0:
        c.tag = c.delivering
        c.done(1)


def amqp_take(c: Conversation, data: bytes) -> int:
    """Acknowledge all complete messages of a chunk together."""
    before = c.tag
    used = amqp(c, data)
    if c.tag > before:
        c.emit(struct.pack(">BHIHHQB", METHOD_FRAME, 1, 13, 60, 80, c.tag, 1) + bytes([FRAME_END]))
    return used


RULES: dict[str, Rule] = {
    "tmq-put": tmq_put,
    "tmq-take": tmq_take,
    "tmq-mixed": tmq_mixed,
    "ring": ring,
    "line": line,
    "resp": resp,
    "beanstalkd-take": beanstalkd_take,
    "nats": nats,
    "amqp-put": amqp,
    "amqp-take": amqp_take,
    "nats-publish": nats_publish,
}
REQUEST_ONCE = ("amqp-take",)  # the peer pushes: one request starts it
UNANSWERED = ("nats-publish",)  # a request counts as done when sent: only the listeners limit the rate
