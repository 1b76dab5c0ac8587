"""Parse one line of a client (pubsub.md 2)."""

from protos.pubsub.events import Event, Ping, Quit, Refused, Send, Subscribe, Unsubscribe
from protos.pubsub.grammar import FORMS, IDENTIFIER, LF, Charset, Reason, is_of, parse_pattern


def parse_line(line: bytes, eol: bytes, charset: Charset, strict: bool) -> Event:
    """Return the event of `line`, which comes without its end `eol`."""
    if not is_of(charset, line):
        return Refused(Reason.NOT_ASCII if charset is Charset.ASCII else Reason.NOT_UTF8, eol)
    verb, space, rest = line.partition(b" ")
    if verb == b"SEND" and space:
        return _send(line, rest, eol, charset)
    if verb == b"SUBSCRIBE" and space:
        return _subscribe(rest, eol, charset)
    if strict:
        return Refused(Reason.UNKNOWN_HERE, eol)
    if verb == b"UNSUBSCRIBE" and space:
        return _unsubscribe(rest, eol)
    return _bare(line, eol)


def _send(line: bytes, rest: bytes, eol: bytes, charset: Charset) -> Event:
    tag, space, message = rest.partition(b" ")
    if not FORMS[charset].tag.fullmatch(tag):
        return Refused(Reason.BAD_TAG, eol)
    if not space:
        return Refused(Reason.NO_MESSAGE, eol)
    if not FORMS[charset].text.fullmatch(message):
        return Refused(Reason.BAD_MESSAGE, eol)
    return Send(line + LF, 1, eol)


def _subscribe(rest: bytes, eol: bytes, charset: Charset) -> Event:
    identifier, _, text = rest.partition(b" ")
    if not IDENTIFIER.fullmatch(identifier):
        return Refused(Reason.BAD_IDENTIFIER, eol)
    pattern = parse_pattern(text, charset)
    return Refused(Reason.BAD_PATTERN, eol) if pattern is None else Subscribe(identifier, pattern, eol)


def _unsubscribe(identifier: bytes, eol: bytes) -> Event:
    if IDENTIFIER.fullmatch(identifier):
        return Unsubscribe(identifier, eol)
    return Refused(Reason.BAD_IDENTIFIER, eol)


def _bare(line: bytes, eol: bytes) -> Event:
    if line == b"PING":
        return Ping(eol)
    if line == b"QUIT":
        return Quit(eol)
    return Refused(Reason.UNKNOWN_VERB, eol)
