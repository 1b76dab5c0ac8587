"""Rendering log lines as MESSAGE lines (pubsub.md 2, 3.3, 5.3), compared with line-by-line models."""

from itertools import groupby

from hypothesis import example, given
from hypothesis import strategies as st

from services.pubsub.render import for_client, render, runs

Line = tuple[bytes, bytes]  # tag, text

# pubsub.md 2: contents of tags and texts; the samples look like lines, patterns, escapes and each other.
tags = st.sampled_from(
    [b"x", b"xx", b"y", b"SEND", b"SENDx", b".", b"[x]+", rb"\1", b"\xff", b"$x"]
) | st.lists(st.integers(33, 255).filter(lambda byte: byte != ord("*")), min_size=1, max_size=5).map(bytes)
pieces = st.sampled_from(
    [b"SEND x ", b"SEND ", b"x ", b" ", b"MESSAGE 1 ", b"\\", rb"\xff", b"n", b"\x7f", b"\xc3\xa9"]
)
texts = st.lists(pieces | st.lists(st.integers(32, 255), max_size=5).map(bytes), max_size=5).map(b"".join)
lines = st.lists(st.tuples(tags, texts), max_size=12)
# Runs: each tag with several texts
blocks = st.lists(st.tuples(tags, st.lists(texts, min_size=1, max_size=4)), max_size=6).map(
    lambda groups: [(tag, text) for tag, group in groups for text in group]
)
identifiers = st.lists(st.from_regex(rb"[0-9]{1,6}", fullmatch=True), max_size=4).map(tuple)


def as_block(given_lines: list[Line]) -> bytes:
    return b"".join(b"SEND " + tag + b" " + text + b"\n" for tag, text in given_lines)


@given(lines | blocks)
@example([(b"x", b""), (b"x", b"SEND x "), (b"xx", b""), (b"x", b" ")])
# as many "SEND x " as lines, but not at their beginnings
@example([(b"x", b"SEND x SEND x "), (b"y", b"SEND x ")])
@example([(b".", b"1"), (b"x", b"2")])
def test_runs_are_consecutive_lines_of_one_tag(given_lines: list[Line]) -> None:
    """Check that runs are consecutive lines of one tag, in order, with texts never taken for lines.

    (pubsub.md 2, 3.4)
    """
    expected = [(tag, as_block(list(group))) for tag, group in groupby(given_lines, key=lambda line: line[0])]
    assert list(runs(as_block(given_lines))) == expected


@given(tags, st.lists(texts, min_size=1, max_size=8), identifiers)
@example(b"x", [b"SEND x ", b"", b" SEND x 1"], (b"1",))
@example(b"x", [b"SEND x ", b"", b" SEND x 1"], (b"1", b"007"))
def test_each_message_goes_to_all_identifiers_before_the_next(
    tag: bytes, given_texts: list[bytes], given_identifiers: tuple[bytes, ...]
) -> None:
    """Check that each message goes to all identifiers before the next, in subscription order (pubsub.md 3.3)."""
    run = as_block([(tag, text) for text in given_texts])
    expected = [b"MESSAGE %b %b\n" % (one, text) for text in given_texts for one in given_identifiers]
    assert render(run, tag, given_identifiers) == b"".join(expected)


def test_message_is_rendered() -> None:
    """Check that a message is rendered (pubsub.md 2, `MatchingMessage`).

    2.1: an empty message keeps the space before it; 2.3: ids as they were sent.
    """
    assert render(b"SEND orders new one\n", b"orders", (b"007",)) == b"MESSAGE 007 new one\n"
    assert render(b"SEND orders \n", b"orders", (b"7",)) == b"MESSAGE 7 \n"
    assert render(b"SEND orders \n", b"orders", ()) == b""


def shown(text: bytes, ascii_only: bool) -> bytes:
    if not ascii_only or max(text, default=0) < 128:
        return text
    escapes = {ord("\\"): rb"\\"} | {byte: b"\\x%02x" % byte for byte in range(128, 256)}
    return b"".join(escapes.get(byte, bytes([byte])) for byte in text)


@given(st.lists(texts, max_size=6), st.booleans(), st.booleans())
@example([b"caf\xc3\xa9 \\", b"plain \\", b"\x7f"], True, True)
def test_a_client_gets_its_line_ends_and_its_charset(
    texts: list[bytes], crlf: bool, ascii_only: bool
) -> None:
    """Check that a client gets its line ends and charset: only lines outside the charset are escaped.

    (pubsub.md 1.1, 5.3)
    """
    end = b"\r\n" if crlf else b"\n"
    expected = [b"MESSAGE 1 " + shown(text, ascii_only) + end for text in texts]
    messages = b"".join(b"MESSAGE 1 " + text + b"\n" for text in texts)
    assert for_client(messages, crlf, ascii_only) == b"".join(expected)


def test_every_byte_is_escaped_for_ascii() -> None:
    r"""Check that every byte is escaped for ASCII (pubsub.md 5.3).

    Bytes >= 128 become \xNN in lower case; a backslash is doubled only in lines with escapes.
    """
    every = bytes(range(32, 256))
    escaped = for_client(b"".join(b"MESSAGE 1 %c\n" % byte for byte in every), crlf=False, ascii_only=True)
    assert escaped == b"".join(b"MESSAGE 1 %b\n" % shown(bytes([byte]), True) for byte in every)
    whole = for_client(b"MESSAGE 1 %b\n" % every, crlf=False, ascii_only=True)
    assert whole == b"MESSAGE 1 %b\n" % shown(every, True)
    assert escaped.isascii()
    assert rb"Z[\\]^" in whole


def test_texts_full_of_line_heads_take_linear_time() -> None:
    """Check that texts full of line heads take linear time; with quadratic time this test would time out."""
    text = b"SEND x " * (1 << 20)
    block = as_block([(b"x", text), (b"x", b""), (b"y", text)])
    assert [tag for tag, _ in runs(block)] == [b"x", b"y"]
    rendered = render(block[: -len(text) - 8], b"x", (b"1", b"2"))
    assert rendered == b"MESSAGE 1 %b\nMESSAGE 2 %b\nMESSAGE 1 \nMESSAGE 2 \n" % (text, text)
    assert len(for_client(rendered + b"MESSAGE 3 \xff" + text, crlf=True, ascii_only=True)) == len(
        rendered
    ) + 4 + 14 + len(text)
