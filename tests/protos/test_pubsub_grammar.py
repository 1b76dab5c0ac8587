"""Corner cases of the grammar (pubsub.md 2). Refused lines have their reason (2.4)."""

import pytest

from protos.pubsub import (
    Charset,
    Limits,
    Pattern,
    Ping,
    Quit,
    Reason,
    Send,
    Subscribe,
    Unsubscribe,
    is_message,
    parse_pattern,
)
from tests.protos.pubsub_samples import CRLF, LF, event_of, events_of, reason_of

UTF8 = Limits(charset=Charset.UTF8)
STRICT = Limits(strict=True)
LISTENERS = [Limits(), UTF8]


def send(line: bytes) -> Send:
    return Send(line + b"\n", 1, LF)


# --- SEND (2, 2.1)


@pytest.mark.parametrize("limits", LISTENERS, ids=["ascii", "utf-8"])
def test_a_tag_holds_every_character_above_32_but_the_star(limits: Limits) -> None:
    for code in range(128):
        line = b"SEND a%c message" % code
        if code == 10:
            assert [event.reason for event in events_of(line + b"\n", limits)] == [
                Reason.NO_MESSAGE,
                Reason.UNKNOWN_VERB,
            ]
        elif code == 32:
            assert event_of(line + b"\n", limits) == send(line)  # the message begins with a space
        elif code < 32 or code == 42:
            assert reason_of(line + b"\n", limits) is Reason.BAD_TAG
        else:
            assert event_of(line + b"\n", limits) == send(line)


@pytest.mark.parametrize("limits", LISTENERS, ids=["ascii", "utf-8"])
def test_a_message_holds_every_character_above_31(limits: Limits) -> None:
    for code in set(range(128)) - {10}:
        line = b"SEND a b%cc" % code
        if code < 32:
            assert reason_of(line + b"\n", limits) is Reason.BAD_MESSAGE
        else:
            assert event_of(line + b"\n", limits) == send(line)


@pytest.mark.parametrize(
    "line",
    [b"SEND tag ", b"SEND x  two  spaces ", b"SEND x SEND y z", b"SEND x *", b"SEND \x7f \x7f"],
)
def test_2_1_unusual_sends_are_accepted(line: bytes) -> None:
    assert event_of(line + b"\n") == send(line)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"SEND tag", Reason.NO_MESSAGE),
        (b"SEND ", Reason.BAD_TAG),
        (b"SEND  ", Reason.BAD_TAG),
        (b"SEND  x m", Reason.BAD_TAG),
        (b"SEND * m", Reason.BAD_TAG),
        (b"SEND a* m", Reason.BAD_TAG),
        (b"SEND", Reason.UNKNOWN_VERB),
        (b"Send x m", Reason.UNKNOWN_VERB),
        (b" SEND x m", Reason.UNKNOWN_VERB),
        (b"SEND\tx m", Reason.UNKNOWN_VERB),
        (b"SENDx m", Reason.UNKNOWN_VERB),
        (b"", Reason.UNKNOWN_VERB),
        (b" ", Reason.UNKNOWN_VERB),
        (b"OK", Reason.UNKNOWN_VERB),
    ],
)
def test_2_1_sends_that_are_refused(line: bytes, reason: Reason) -> None:
    for eol in (LF, CRLF):
        refused = event_of(line + eol)
        assert (refused.reason, refused.eol) == (reason, eol)


def test_2_1_a_carriage_return_inside_a_line_is_a_bad_character() -> None:
    assert reason_of(b"SEND x a\rb\n") is Reason.BAD_MESSAGE
    assert reason_of(b"SEND x a\r\r\n") is Reason.BAD_MESSAGE
    assert reason_of(b"SEND x\ry b\n") is Reason.BAD_TAG
    assert reason_of(b"\r\r\n") is Reason.UNKNOWN_VERB


# --- beyond ASCII (2.1)


@pytest.mark.parametrize(
    "line", ["SEND тег сообщение", "SEND x é", "SUBSCRIBE 1 тег", "SUBSCRIBE 1 тег*", "SEND 😀 \x80"]
)
def test_2_1_utf8_needs_a_utf8_listener(line: str) -> None:
    wire = line.encode() + b"\n"
    assert reason_of(wire) is Reason.NOT_ASCII
    assert isinstance(event_of(wire, UTF8), Send | Subscribe)


@pytest.mark.parametrize(
    "bad", [b"\x80", b"\xff", b"\xc3", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"]
)
def test_2_1_a_utf8_listener_takes_nothing_but_utf8(bad: bytes) -> None:
    for line in (b"SEND x " + bad, b"SEND " + bad + b" m", b"SUBSCRIBE 1 " + bad, bad):
        assert reason_of(line + b"\n", UTF8) is Reason.NOT_UTF8
        assert reason_of(line + b"\n") is Reason.NOT_ASCII


def test_2_1_letters_beyond_ascii_are_no_digits() -> None:
    assert reason_of("SUBSCRIBE ٣ x\n".encode(), UTF8) is Reason.BAD_IDENTIFIER
    assert reason_of("SUBSCRIBE 1² x\n".encode(), UTF8) is Reason.BAD_IDENTIFIER


def test_2_1_one_line_that_is_no_utf8_spoils_no_other_of_its_run() -> None:
    good, bad = b"SEND x \xd1\x8f\n", b"SEND x \xd1\n"
    events = events_of(good + bad + good * 2, UTF8)
    assert [type(event).__name__ for event in events] == ["Send", "Refused", "Send", "Send"]
    assert [event.block for event in events if isinstance(event, Send)] == [good] * 3


# --- SUBSCRIBE (2, 2.3)


@pytest.mark.parametrize(
    ("line", "identifier", "pattern"),
    [
        (b"SUBSCRIBE 1 news", b"1", Pattern(b"news", False)),
        (b"SUBSCRIBE 22 ne*", b"22", Pattern(b"ne", True)),
        (b"SUBSCRIBE 007 x", b"007", Pattern(b"x", False)),  # 2.3: as it was sent
        (b"SUBSCRIBE " + b"9" * 500 + b" x", b"9" * 500, Pattern(b"x", False)),
        (b"SUBSCRIBE 0 \x7f*", b"0", Pattern(b"\x7f", True)),
    ],
)
def test_2_subscriptions(line: bytes, identifier: bytes, pattern: Pattern) -> None:
    assert event_of(line + b"\n") == Subscribe(identifier, pattern, LF)
    assert event_of(line + b"\r\n", STRICT) == Subscribe(identifier, pattern, CRLF)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"SUBSCRIBE", Reason.UNKNOWN_VERB),
        (b"SUBSCRIBE ", Reason.BAD_IDENTIFIER),
        (b"SUBSCRIBE  1 x", Reason.BAD_IDENTIFIER),
        (b"SUBSCRIBE -1 x", Reason.BAD_IDENTIFIER),
        (b"SUBSCRIBE 1a x", Reason.BAD_IDENTIFIER),
        (b"SUBSCRIBE 1", Reason.BAD_PATTERN),
        (b"SUBSCRIBE 1 ", Reason.BAD_PATTERN),
        (b"SUBSCRIBE 1  x", Reason.BAD_PATTERN),
        (b"SUBSCRIBE 1 *", Reason.BAD_PATTERN),  # 2.1
        (b"SUBSCRIBE 1 **", Reason.BAD_PATTERN),
        (b"SUBSCRIBE 1 *a", Reason.BAD_PATTERN),
        (b"SUBSCRIBE 1 a**", Reason.BAD_PATTERN),
        (b"SUBSCRIBE 1 a b", Reason.BAD_PATTERN),
        (b"SUBSCRIBE 1 a ", Reason.BAD_PATTERN),
        (b"SUBSCRIBE 1 a\tb", Reason.BAD_PATTERN),
        (b"subscribe 1 a", Reason.UNKNOWN_VERB),
    ],
)
def test_2_subscriptions_that_are_refused(line: bytes, reason: Reason) -> None:
    assert reason_of(line + b"\n") is reason


def test_2_a_prefix_matches_the_tag_itself_and_all_longer_ones() -> None:
    prefix, exact = Pattern(b"abc", True), Pattern(b"abc", False)
    assert [prefix.matches(tag) for tag in (b"ab", b"abc", b"abcd", b"xabc")] == [False, True, True, False]
    assert [exact.matches(tag) for tag in (b"ab", b"abc", b"abcd", b"xabc")] == [False, True, False, False]


@pytest.mark.parametrize("text", [b"a", b"a*", "тег*".encode()])
def test_2_a_pattern_is_written_as_it_was_read(text: bytes) -> None:
    pattern = parse_pattern(text, Charset.UTF8)
    assert pattern is not None
    assert pattern.encode() == text
    assert str(pattern) == text.decode()


@pytest.mark.parametrize("text", [b"", b"*", b"a b", b"a*b", b"a\n", b"a*\n"])
def test_2_1_illegal_patterns(text: bytes) -> None:
    assert parse_pattern(text, Charset.ASCII) is None
    assert parse_pattern(text, Charset.UTF8) is None


def test_2_message_texts() -> None:
    assert is_message(b"", Charset.ASCII)
    assert is_message("я".encode(), Charset.UTF8)
    assert not is_message("я".encode(), Charset.ASCII)
    assert not any(is_message(text, Charset.UTF8) for text in (b"a\n", b"\t", b"\x80"))


# --- the additions (2.2)


def test_2_2_the_additions() -> None:
    assert events_of(b"PING\nUNSUBSCRIBE 007\r\nQUIT\r\n") == [
        Ping(LF),
        Unsubscribe(b"007", CRLF),
        Quit(CRLF),
    ]


@pytest.mark.parametrize("line", [b"PING", b"QUIT", b"UNSUBSCRIBE 1", b"UNSUBSCRIBE x"])
def test_2_2_a_strict_listener_knows_no_additions(line: bytes) -> None:
    """Check that a strict listener knows no additions, and its replies do not mention them."""
    reason = reason_of(line + b"\n", STRICT)
    assert reason is Reason.UNKNOWN_HERE
    assert reason.label == Reason.UNKNOWN_VERB.label
    assert not any(verb in reason.text for verb in ("UNSUBSCRIBE", "PING", "QUIT"))


@pytest.mark.parametrize("reason", [Reason.UNKNOWN_VERB, Reason.UNKNOWN_HERE])
def test_2_2_unknown_command_lists_the_known_ones(reason: Reason) -> None:
    assert "SEND tag message, SUBSCRIBE id pattern" in reason.text
    assert ("UNSUBSCRIBE id, PING, QUIT" in reason.text) is (reason is Reason.UNKNOWN_VERB)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"PING ", Reason.UNKNOWN_VERB),
        (b"ping", Reason.UNKNOWN_VERB),
        (b"QUIT now", Reason.UNKNOWN_VERB),
        (b"UNSUBSCRIBE", Reason.UNKNOWN_VERB),
        (b"UNSUBSCRIBE ", Reason.BAD_IDENTIFIER),
        (b"UNSUBSCRIBE a", Reason.BAD_IDENTIFIER),
        (b"UNSUBSCRIBE 1 ", Reason.BAD_IDENTIFIER),
    ],
)
def test_2_2_additions_that_are_refused(line: bytes, reason: Reason) -> None:
    assert reason_of(line + b"\n") is reason


def test_2_4_of_several_faults_the_first_is_named() -> None:
    tight = Limits(max_line_bytes=10)
    assert reason_of(b"SEND \xff \xff\xff\xff\xff\n", tight) is Reason.LINE_TOO_LONG
    assert reason_of(b"\xff \x01\n") is Reason.NOT_ASCII
    assert reason_of(b"SEND \x01\n") is Reason.BAD_TAG
    assert reason_of(b"SUBSCRIBE a *\n") is Reason.BAD_IDENTIFIER
