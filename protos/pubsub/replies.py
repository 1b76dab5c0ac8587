"""Encode and parse a server's answers and deliveries (pubsub.md 2)."""

import re
from dataclasses import dataclass

from protos.pubsub.grammar import LF, Charset, Reason
from protos.pubsub.text import escape
from protos.types import PeerError

_MESSAGE = re.compile(rb"MESSAGE ([0-9]++) ([ -\xff]*+)")
_ERROR = re.compile(rb"ERROR ([ -\xff]*+)")


@dataclass(frozen=True, slots=True)
class Ok:
    """The request was carried out (3.1)."""


@dataclass(frozen=True, slots=True)
class Error:
    """The request was not carried out; `text` says why."""

    text: bytes  # why, as a client reads it


@dataclass(frozen=True, slots=True)
class Message:
    """A message that matches the subscription `identifier`, which is digits as the client sent them."""

    identifier: bytes  # of the subscription, digits as the client sent them
    text: bytes  # the message


Reply = Ok | Error | Message  # a line of a server
_OK = Ok()


def encode_ok(eol: bytes, count: int = 1) -> bytes:
    """Encode `count` OK lines."""
    return (b"OK" + eol) * count


def encode_error(reason: Reason | str, eol: bytes) -> bytes:
    """Encode ERROR and the reason, escaped if necessary (5.3)."""
    text = reason.text if isinstance(reason, Reason) else reason
    return b"ERROR " + escape(text.encode("utf-8", "backslashreplace"), Charset.ASCII) + eol


def encode_message(identifier: bytes, message: bytes, eol: bytes) -> bytes:
    """Encode one delivery; `message` is a legal Message."""
    return b"MESSAGE " + identifier + b" " + message + eol


def encode_reply(reply: Reply, eol: bytes) -> bytes:
    """Encode any reply."""
    match reply:
        case Ok():
            return encode_ok(eol)
        case Error():
            return b"ERROR " + reply.text + eol
        case Message():
            return encode_message(reply.identifier, reply.text, eol)


def parse_reply(line: bytes) -> Reply:
    """Parse one line of a server, with or without its end. Raises PeerError `bad_reply`."""
    line = line.removesuffix(LF).removesuffix(b"\r")
    if line == b"OK":
        return _OK
    if found := _MESSAGE.fullmatch(line):
        return Message(*found.groups())
    if found := _ERROR.fullmatch(line):
        return Error(found[1])
    raise PeerError("bad_reply")
