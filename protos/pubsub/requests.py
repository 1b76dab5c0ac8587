"""Encode a client's requests (pubsub.md 2).

Tags, messages, identifiers and patterns are encoded unchanged, even illegal ones, which the server refuses. Raises
LocalError only for one that holds an end of line, which would derail all that follows.
"""

from typing import assert_never

from protos.pubsub.events import Ping, Quit, Request, Send, Subscribe, Unsubscribe
from protos.pubsub.grammar import LF
from protos.types import LocalError


def encode_send(tag: bytes, message: bytes, eol: bytes = LF) -> bytes:
    """Encode SEND of `message` under `tag`; answered by OK or ERROR."""
    return _encode(b"SEND " + tag + b" " + message, eol)


def encode_subscribe(identifier: bytes, pattern: bytes, eol: bytes = LF) -> bytes:
    """Encode SUBSCRIBE to a tag, or to all that begin with one (`tag*`); answered by OK or ERROR."""
    return _encode(b"SUBSCRIBE " + identifier + b" " + pattern, eol)


def encode_unsubscribe(identifier: bytes, eol: bytes = LF) -> bytes:
    """Encode UNSUBSCRIBE, an addition (2.2); answered by OK or ERROR."""
    return _encode(b"UNSUBSCRIBE " + identifier, eol)


def encode_ping(eol: bytes = LF) -> bytes:
    """Encode PING, an addition (2.2); answered by OK."""
    return b"PING" + eol


def encode_quit(eol: bytes = LF) -> bytes:
    """Encode QUIT, an addition (2.2); answered by OK and the connection's end."""
    return b"QUIT" + eol


def encode_request(request: Request) -> bytes:
    """Encode any request, with the end of line that it came with."""
    match request:
        case Send():
            return request.block.replace(LF, request.eol)
        case Subscribe():
            return encode_subscribe(request.identifier, request.pattern.encode(), request.eol)
        case Unsubscribe():
            return encode_unsubscribe(request.identifier, request.eol)
        case Ping():
            return encode_ping(request.eol)
        case Quit():
            return encode_quit(request.eol)
        case _:
            assert_never(request)


def _encode(line: bytes, eol: bytes) -> bytes:
    if b"\n" in line or b"\r" in line:
        raise LocalError("a line must not contain an end of line")
    return line + eol
