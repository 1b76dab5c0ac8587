"""From lines of the log to MESSAGE lines (pubsub.md 2, 3.3).

A block is what the log holds: lines `SEND <tag> <text>` LF. A tag has no byte below 33, a text none below 32, so the
only LF of a line is its last byte. A text may well contain "SEND x ": a line's beginning is told by the LF before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

ESCAPED = 4  # octets for one, at most
_LONGER = 5  # a MESSAGE's line than a SEND's, at most: the verb, the space behind the identifier, CR

_SEND = b"SEND "
_MESSAGE = b"MESSAGE "

# (tag, run): \1 is the tag that the look-ahead saw. Characters are repeated possessively (++, *+): linear time
_RUN = re.compile(rb"(?=SEND ([^ ]++) )((?:SEND \1 [^\n]*+\n)+)")


def one_tag(block: bytes, lines: int) -> bytes | None:
    """The tag of all the lines of a block, if that is one."""
    head = block[: block.index(b" ", len(_SEND)) + 1]
    return head[len(_SEND) : -1] if block.count(b"\n" + head) + 1 == lines else None


def runs(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The block cut where the tag changes: (tag, its lines), in order. An empty block has no runs."""
    if not block:
        return iter(())
    tag = one_tag(block, block.count(b"\n"))  # mostly they have
    return iter(_RUN.findall(block)) if tag is None else iter([(tag, block)])


def render(run: bytes, tag: bytes, identifiers: tuple[bytes, ...]) -> bytes:
    """Lines of one tag as the MESSAGE lines of a connection whose subscriptions `identifiers` match it.

    Each message goes to all of them, in their order, before the next one (pubsub.md 3.3). The result may be as many
    times longer than the run as there are identifiers: the caller bounds both.
    """
    head = _SEND + tag + b" "
    if len(identifiers) == 1:
        new_head = _MESSAGE + identifiers[0] + b" "
        return new_head + run[len(head) :].replace(b"\n" + head, b"\n" + new_head)
    if not identifiers:
        return b""
    # a text joins these into its lines, one for each identifier
    pieces = [b"%bMESSAGE %b " % (b"\n" if index else b"", each) for index, each in enumerate(identifiers)]
    pieces.append(b"\n")
    return b"".join([text.join(pieces) for text in run[len(head) : -1].split(b"\n" + head)])


def message_bytes(run: bytes, lines: int, identifiers: list[bytes], ascii_only: bool) -> int:
    """How long the MESSAGE lines of a run are at most, for all of these identifiers."""
    texts = len(run) * (ESCAPED if ascii_only and not run.isascii() else 1) + lines * _LONGER
    return texts * len(identifiers) + lines * sum(map(len, identifiers))


def for_client(rendered: bytes, crlf: bool, ascii_only: bool) -> bytes:
    """MESSAGE lines as one client reads them: its line ends (pubsub.md 1.1) and its charset (pubsub.md 5.3)."""
    if ascii_only and not rendered.isascii():
        rendered = b"\n".join([line if line.isascii() else _escaped(line) for line in rendered.split(b"\n")])
    return rendered.replace(b"\n", b"\r\n") if crlf else rendered


class LongLine:
    """The MESSAGE line that was rendered last: many go in pieces at a time, and each piece would render it anew."""

    __slots__ = ("_asked", "_data")

    def __init__(self) -> None:
        self._asked: tuple[bytes, bytes, bytes, bool, bool] | None = None
        self._data = b""

    def of(self, line: bytes, tag: bytes, identifier: bytes, crlf: bool, ascii_only: bool) -> bytes:
        """What one subscription's client reads of a line of the log."""
        asked = (identifier, tag, line, crlf, ascii_only)
        if asked != self._asked:
            self._data = for_client(render(line, tag, (identifier,)), crlf, ascii_only)
            self._asked = asked
        return self._data

    def forget(self) -> None:
        self._asked, self._data = None, b""


def _escaped(line: bytes) -> bytes:
    r"""A backslash as `\\`, bytes >= 128 as `\xNN`. The line's head has neither, so the text alone changes."""
    doubled = line.replace(b"\\", rb"\\")
    return doubled.decode("latin-1").encode("ascii", "backslashreplace")
