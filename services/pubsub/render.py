"""Turn lines of the log into MESSAGE lines (pubsub.md 2, 3.3).

A block of the log is lines `SEND <tag> <text>` LF. A tag has no byte below 33 and a text none below 32, so the only LF
of a line is its last byte. A text may contain "SEND x ": a line begins after an LF only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

ESCAPED = 4  # most octets that escaping makes of one
_LONGER = 5  # most octets that a MESSAGE line is longer than its SEND line, without the identifier

_SEND = b"SEND "
_MESSAGE = b"MESSAGE "

# (tag, run): \1 is the tag found by the look-ahead. Possessive quantifiers (++, *+) keep the time linear.
_RUN = re.compile(rb"(?=SEND ([^ ]++) )((?:SEND \1 [^\n]*+\n)+)")


def one_tag(block: bytes, lines: int) -> bytes | None:
    """Return the tag of a block if all its lines have the same, else None."""
    head = block[: block.index(b" ", len(_SEND)) + 1]
    return head[len(_SEND) : -1] if block.count(b"\n" + head) + 1 == lines else None


def runs(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Split a block where the tag changes: yield (tag, its lines) in order."""
    if not block:
        return iter(())
    tag = one_tag(block, block.count(b"\n"))  # the usual case
    return iter(_RUN.findall(block)) if tag is None else iter([(tag, block)])


def render(run: bytes, tag: bytes, identifiers: tuple[bytes, ...]) -> bytes:
    """Return lines of one tag as the MESSAGE lines of a connection whose subscriptions `identifiers` match it.

    Each message goes to all of them, in their order, before the next one (pubsub.md 3.3). The caller bounds the result,
    which may be as many times longer than the run as there are identifiers.
    """
    head = _SEND + tag + b" "
    if len(identifiers) == 1:
        new_head = _MESSAGE + identifiers[0] + b" "
        return new_head + run[len(head) :].replace(b"\n" + head, b"\n" + new_head)
    if not identifiers:
        return b""
    # joined by a text, these are its lines, one for each identifier
    pieces = [b"%bMESSAGE %b " % (b"\n" if index else b"", each) for index, each in enumerate(identifiers)]
    pieces.append(b"\n")
    return b"".join([text.join(pieces) for text in run[len(head) : -1].split(b"\n" + head)])


def message_bytes(run: bytes, lines: int, identifiers: list[bytes], ascii_only: bool) -> int:
    """Return an upper bound of the length of a run's MESSAGE lines for these identifiers."""
    texts = len(run) * (ESCAPED if ascii_only and not run.isascii() else 1) + lines * _LONGER
    return texts * len(identifiers) + lines * sum(map(len, identifiers))


def for_client(rendered: bytes, crlf: bool, ascii_only: bool) -> bytes:
    """Return MESSAGE lines with a client's line ends (pubsub.md 1.1) and charset (pubsub.md 5.3)."""
    if ascii_only and not rendered.isascii():
        rendered = b"\n".join([line if line.isascii() else _escaped(line) for line in rendered.split(b"\n")])
    return rendered.replace(b"\n", b"\r\n") if crlf else rendered


class LongLine:
    """A cache of the last rendered MESSAGE line, which is sent in pieces to many clients."""

    __slots__ = ("_asked", "_data")

    def __init__(self) -> None:
        self._asked: tuple[bytes, bytes, bytes, bool, bool] | None = None
        self._data = b""

    def of(self, line: bytes, tag: bytes, identifier: bytes, crlf: bool, ascii_only: bool) -> bytes:
        """Return a line of the log as one subscription's client reads it."""
        asked = (identifier, tag, line, crlf, ascii_only)
        if asked != self._asked:
            self._data = for_client(render(line, tag, (identifier,)), crlf, ascii_only)
            self._asked = asked
        return self._data

    def forget(self) -> None:
        """Free the memory."""
        self._asked, self._data = None, b""


def _escaped(line: bytes) -> bytes:
    r"""Escape a backslash as `\\` and bytes >= 128 as `\xNN`; the line's head has neither."""
    doubled = line.replace(b"\\", rb"\\")
    return doubled.decode("latin-1").encode("ascii", "backslashreplace")
