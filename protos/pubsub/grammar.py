"""The grammar of the text pub/sub service, as expressions over bytes (pubsub.md 2).

A run of SENDs is recognised at once and kept unchanged: the lines are legal, so a line feed ends each of them and
nothing else holds one. That makes a publisher cheap. All repeats of characters are possessive: no line is read more
than once for each expression tried. Repeats of groups are not: Python before 3.11.5 matches those too far.
"""

import re
from dataclasses import dataclass
from enum import Enum

from protos.runs import MAX_RUN

LF = b"\n"  # the end of a line (1.1)
CRLF = b"\r\n"  # the other end that clients may use (1.1)
TAG_ASCII = rb"[!-)+-\x7f]"  # above 32, except '*' (2); 127 is allowed (2.1)
TAG_ANY = rb"[!-)+-\xff]"  # the same beyond ASCII
TEXT_ASCII = rb"[ -\x7f]"  # above 31
TEXT_ANY = rb"[ -\xff]"


class Charset(Enum):
    """The characters beyond ASCII that a listener accepts (2.1)."""

    ASCII = "ascii"  # bytes from 128 on are an error
    UTF8 = "utf-8"  # they are allowed, if they are UTF-8


class Reason(Enum):
    """The reason for an ERROR reply: the label of the counter, and the text for the client."""

    LINE_TOO_LONG = "line_too_long", "line too long"  # 1.2
    UNFINISHED = "unfinished", "the line has no end"  # FIN inside a line (1.3)
    UNKNOWN_VERB = (  # 2.1
        "unknown_verb",
        "unknown command; known: SEND tag message, SUBSCRIBE id pattern, UNSUBSCRIBE id, PING, QUIT",
    )
    UNKNOWN_HERE = (  # the same on a strict listener (2.2)
        "unknown_verb",
        "unknown command; known: SEND tag message, SUBSCRIBE id pattern",
    )
    BAD_TAG = "bad_tag", "bad tag: 1 or more characters above 32, none of them '*'"  # 2
    NO_MESSAGE = "no_message", "no message: a space ends the tag, even if the message is empty"  # 2.1
    BAD_MESSAGE = "bad_message", "bad message: only characters above 31"  # 2
    BAD_IDENTIFIER = "bad_identifier", "bad identifier: digits only"  # 2
    BAD_PATTERN = "bad_pattern", "bad pattern: a tag, or the beginning of one and then '*'"  # 2
    NOT_ASCII = "not_ascii", "only ASCII here"  # 2.1, charset ascii
    NOT_UTF8 = "not_utf8", "not UTF-8"  # 2.1, charset utf-8
    IDENTIFIER_IN_USE = "identifier_in_use", "identifier in use"  # raised by the service (2.3)
    IDENTIFIER_UNKNOWN = "identifier_unknown", "no subscription has this identifier"  # the same (2.2)

    def __init__(self, label: str, text: str) -> None:
        self.label = label  # of the counter
        self.text = text  # that the client reads


@dataclass(frozen=True, slots=True)
class Pattern:
    """The tags that a subscription matches: one tag, or with `is_prefix` all tags that begin with it."""

    tag: bytes  # the whole tag, or its beginning
    is_prefix: bool  # True: all tags that begin with `tag`

    def matches(self, tag: bytes) -> bool:
        """Return whether the subscription gets messages with this tag."""
        return tag.startswith(self.tag) if self.is_prefix else tag == self.tag

    def encode(self) -> bytes:
        """Encode the pattern as a client writes it."""
        return self.tag + b"*" if self.is_prefix else self.tag

    def __str__(self) -> str:
        return self.encode().decode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True)
class Forms:
    """The expressions of one charset; each matches a whole line without its end, except for the runs."""

    run_lf: re.Pattern[bytes]  # 1 to MAX_RUN SENDs, each ended by LF
    run_crlf: re.Pattern[bytes]  # the same, each ended by CR LF
    tag: re.Pattern[bytes]
    text: re.Pattern[bytes]
    pattern: re.Pattern[bytes]


def _forms(tag: bytes, text: bytes) -> Forms:
    send = rb"SEND " + tag + rb"++ " + text + rb"*+"
    most = b"{1,%d}" % MAX_RUN
    return Forms(
        run_lf=re.compile(b"(?:" + send + b"\n)" + most),
        run_crlf=re.compile(b"(?:" + send + b"\r\n)" + most),
        tag=re.compile(tag + b"++"),
        text=re.compile(text + b"*+"),
        pattern=re.compile(tag + rb"++\*?"),
    )


# Whether bytes from 128 on are UTF-8 is checked separately, for a whole run at once.
FORMS = {Charset.ASCII: _forms(TAG_ASCII, TEXT_ASCII), Charset.UTF8: _forms(TAG_ANY, TEXT_ANY)}
IDENTIFIER = re.compile(rb"[0-9]++")


def parse_pattern(text: bytes, charset: Charset) -> Pattern | None:
    """Parse a pattern as a client writes it; None if it is illegal (2, 2.1)."""
    if not FORMS[charset].pattern.fullmatch(text) or not is_of(charset, text):
        return None
    is_prefix = text.endswith(b"*")
    return Pattern(text[:-1] if is_prefix else text, is_prefix)


def is_message(text: bytes, charset: Charset) -> bool:
    """Return whether it is a legal Message (2)."""
    return FORMS[charset].text.fullmatch(text) is not None and is_of(charset, text)


def is_of(charset: Charset, text: bytes) -> bool:
    """Return whether the bytes are text in this charset, control characters included (2.1)."""
    return text.isascii() or (charset is Charset.UTF8 and _is_utf8(text))


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
