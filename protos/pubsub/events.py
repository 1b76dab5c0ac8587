"""Events of a client's connection: one for a line, or for a run of SENDs (pubsub.md 2).

`eol` is how the client ended the line, LF or CR LF: lines sent to it from then on end so (1.1).
"""

from dataclasses import dataclass

from protos.pubsub.grammar import Pattern, Reason


@dataclass(frozen=True, slots=True)
class Send:
    """1 to MAX_RUN consecutive SENDs: `block` is their lines as sent, each ended by a line feed only."""

    block: bytes  # lines `SEND <tag> <message>`, each ended by a line feed only
    count: int  # of lines, 1 to MAX_RUN
    eol: bytes  # LF or CRLF, of all the lines as sent


@dataclass(frozen=True, slots=True)
class Subscribe:
    """SUBSCRIBE: `identifier` is digits as sent; 7 and 007 are different ones (2.3)."""

    identifier: bytes  # digits as sent
    pattern: Pattern  # a tag, or the beginning of tags
    eol: bytes  # LF or CRLF


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """UNSUBSCRIBE, an addition (2.2)."""

    identifier: bytes  # digits as sent
    eol: bytes  # LF or CRLF


@dataclass(frozen=True, slots=True)
class Ping:
    """PING, an addition (2.2)."""

    eol: bytes  # LF or CRLF


@dataclass(frozen=True, slots=True)
class Quit:
    """QUIT, an addition (2.2): to be answered OK, then closed. Nothing behind it is parsed."""

    eol: bytes  # LF or CRLF


@dataclass(frozen=True, slots=True)
class Refused:
    """A line that is not in the grammar: answered with ERROR; the connection stays open."""

    reason: Reason  # what is wrong with the line
    eol: bytes  # LF or CRLF


Request = Send | Subscribe | Unsubscribe | Ping | Quit  # a request of a client
Event = Request | Refused  # what a `Connection` yields
