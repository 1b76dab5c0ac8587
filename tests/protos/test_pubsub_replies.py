"""Replies in both directions, a client's lines, and escaping (pubsub.md 2, 5.3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protos.pubsub import (
    Charset,
    Error,
    Message,
    Ok,
    Reason,
    Reply,
    encode_error,
    encode_message,
    encode_ok,
    encode_ping,
    encode_quit,
    encode_reply,
    encode_send,
    encode_subscribe,
    encode_unsubscribe,
    escape,
    is_message,
    parse_reply,
)
from protos.types import LocalError, PeerError
from tests.protos.pubsub_samples import CRLF, LF

# --- replies (2)


def test_2_replies_are_spelled_as_the_grammar_has_them() -> None:
    assert encode_ok(LF) == b"OK\n"
    assert encode_ok(CRLF, 3) == b"OK\r\nOK\r\nOK\r\n"
    assert encode_error(Reason.IDENTIFIER_IN_USE, LF) == b"ERROR identifier in use\n"  # 2.3
    assert encode_error(Reason.LINE_TOO_LONG, CRLF) == b"ERROR line too long\r\n"  # 1.2
    assert encode_message(b"007", b" two  spaces ", LF) == b"MESSAGE 007  two  spaces \n"


@pytest.mark.parametrize("reason", Reason)
def test_2_every_refusal_is_a_legal_message(reason: Reason) -> None:
    assert is_message(reason.text.encode(), Charset.ASCII)
    assert encode_error(reason, LF) == b"ERROR " + reason.text.encode() + LF
    assert reason.label.isidentifier()


@pytest.mark.parametrize("text", ["two\nlines", "я", "\ud800", "a\r"])
def test_5_3_an_error_text_is_escaped_rather_than_derailing_the_client(text: str) -> None:
    line = encode_error(text, LF)
    assert line.count(LF) == 1
    assert is_message(line[:-1], Charset.ASCII)


@pytest.mark.parametrize(
    ("line", "reply"),
    [
        (b"OK", Ok()),
        (b"ERROR ", Error(b"")),
        (b"ERROR no such thing", Error(b"no such thing")),
        (b"MESSAGE 1 ", Message(b"1", b"")),
        (b"MESSAGE 007  a b ", Message(b"007", b" a b ")),
        (b"MESSAGE 1 \xd1\x8f", Message(b"1", b"\xd1\x8f")),
    ],
)
def test_2_replies_are_read_back(line: bytes, reply: Reply) -> None:
    for eol in (b"", LF, CRLF):
        assert parse_reply(line + eol) == reply
    assert encode_reply(reply, CRLF) == line + CRLF


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"ok",
        b"OK ",
        b"ERROR",
        b"MESSAGE",
        b"MESSAGE 1",
        b"MESSAGE a b",
        b"MESSAGE  b",
        b"ERROR a\tb",
        b"OK\n\n",
    ],
)
def test_2_illegal_replies(line: bytes) -> None:
    with pytest.raises(PeerError, match="bad_reply"):
        parse_reply(line)


texts = st.text(st.characters(min_codepoint=32, codec="utf-8"), max_size=40).map(str.encode)
identifiers = st.from_regex(rb"[0-9]{1,5}", fullmatch=True)
replies = st.one_of(st.just(Ok()), st.builds(Error, texts), st.builds(Message, identifiers, texts))


@given(replies, st.sampled_from([LF, CRLF]))
def test_2_encoded_replies_are_decoded(reply: Reply, eol: bytes) -> None:
    assert parse_reply(encode_reply(reply, eol)) == reply


# --- a client's lines (2, 2.2)


def test_2_a_clients_lines() -> None:
    assert encode_send(b"news", b"hello world") == b"SEND news hello world\n"
    assert encode_send(b"x", b"") == b"SEND x \n"
    assert encode_subscribe(b"22", b"ne*", CRLF) == b"SUBSCRIBE 22 ne*\r\n"
    assert encode_unsubscribe(b"22") == b"UNSUBSCRIBE 22\n"
    assert (encode_ping(), encode_quit(CRLF)) == (b"PING\n", b"QUIT\r\n")


@pytest.mark.parametrize("text", [b"a\nb", b"a\n", b"a\r"])
def test_2_encoding_an_end_of_line_is_a_local_error(text: bytes) -> None:
    for encode in (encode_send, encode_subscribe):
        with pytest.raises(LocalError):
            encode(b"1", text)
        with pytest.raises(LocalError):
            encode(text, b"1")
    with pytest.raises(LocalError):
        encode_unsubscribe(text)


# --- escaping (5.3)


def escaped_byte(code: int) -> bytes:
    """Return the escape of one byte, as in 5.3."""
    if code in (10, 13, 92):
        return {10: rb"\n", 13: rb"\r", 92: rb"\\"}[code]
    return b"\\x%02x" % code if code < 32 or code >= 128 else bytes([code])


@given(st.binary(max_size=60), st.sampled_from(Charset))
def test_5_3_a_body_is_shown_as_it_is_or_escaped(body: bytes, charset: Charset) -> None:
    shown = escape(body, charset)
    if is_message(body, charset):
        assert shown == body
    else:
        assert shown == b"".join(map(escaped_byte, body))
    assert is_message(shown, charset)


def test_5_3_all_bytes() -> None:
    for code in range(256):
        assert escape(b"\n%c" % code, Charset.ASCII) == rb"\n" + escaped_byte(code)
    assert escape(bytes(range(256)), Charset.UTF8) == b"".join(map(escaped_byte, range(256)))


@pytest.mark.parametrize(
    ("body", "charset", "shown"),
    [
        (rb"C:\temp", Charset.ASCII, rb"C:\temp"),  # a legal Message is never changed
        (b"C:\\temp\n", Charset.ASCII, rb"C:\\temp\n"),
        ("я".encode(), Charset.UTF8, "я".encode()),
        ("я".encode(), Charset.ASCII, rb"\xd1\x8f"),
        ("я\t".encode(), Charset.UTF8, rb"\xd1\x8f\x09"),  # an escaped text is ASCII only
        (b"\x7f", Charset.ASCII, b"\x7f"),
        (b"\n\x7f", Charset.ASCII, b"\\n\x7f"),
        (b"\n" + rb"\u0100\u0101\u0102\x09", Charset.ASCII, rb"\n\\u0100\\u0101\\u0102\\x09"),
        (b"", Charset.ASCII, b""),
    ],
)
def test_5_3_examples(body: bytes, charset: Charset, shown: bytes) -> None:
    assert escape(body, charset) == shown
