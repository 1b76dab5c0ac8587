"""Random input of a client, cut at random places (pubsub.md 1, 2). A failure prints how to repeat it."""

from hypothesis import given, settings
from hypothesis import strategies as st

from protos.pubsub import (
    CRLF,
    LF,
    Charset,
    Connection,
    Event,
    Limits,
    Pattern,
    Ping,
    Quit,
    Reason,
    Refused,
    Request,
    Send,
    Subscribe,
    Unsubscribe,
    encode_request,
    encode_send,
)
from tests.protos.feeding import cuts
from tests.protos.pubsub_samples import merged, outcome

charsets = st.sampled_from(Charset)
eols = st.sampled_from([LF, CRLF])
identifiers = st.from_regex(rb"[0-9]{1,6}", fullmatch=True)


def texts(charset: Charset) -> st.SearchStrategy[bytes]:
    last = 127 if charset is Charset.ASCII else None
    characters = st.characters(codec="utf-8", min_codepoint=32, max_codepoint=last)
    return st.one_of(st.text(characters, max_size=30).map(str.encode), st.just(b"SEND x "))


def tags(charset: Charset) -> st.SearchStrategy[bytes]:
    return texts(charset).map(lambda text: text.replace(b" ", b"_").replace(b"*", b"+") or b"x")


def requests(charset: Charset) -> st.SearchStrategy[Request]:
    patterns = st.builds(Pattern, tags(charset), st.booleans())
    lines = st.lists(st.builds(encode_send, tags(charset), texts(charset)), min_size=1, max_size=5)
    return st.one_of(
        st.builds(lambda found, eol: Send(b"".join(found), len(found), eol), lines, eols),
        st.builds(Subscribe, identifiers, patterns, eols),
        st.builds(Unsubscribe, identifiers, eols),
        st.builds(Ping, eols),
    )


@settings(max_examples=60)
@given(charsets, st.data())
def test_requests_come_back_as_they_were_encoded(charset: Charset, data: st.DataObject) -> None:
    sent = data.draw(st.lists(requests(charset), max_size=6))
    wire = b"".join(map(encode_request, sent))
    assert outcome(Limits(charset=charset), data.draw(cuts(wire))) == merged(sent)


bad_lines = st.sampled_from(
    [
        (b"", Reason.UNKNOWN_VERB),
        (b"send x y", Reason.UNKNOWN_VERB),
        (b"SEND x", Reason.NO_MESSAGE),
        (b"SEND *", Reason.BAD_TAG),
        (b"SEND x \t", Reason.BAD_MESSAGE),
        (b"SUBSCRIBE x y", Reason.BAD_IDENTIFIER),
        (b"SUBSCRIBE 1 *", Reason.BAD_PATTERN),
        (b"SEND x " + b"y" * 400, Reason.LINE_TOO_LONG),
        (b"y" * 301, Reason.LINE_TOO_LONG),
    ]
)


@given(st.lists(requests(Charset.ASCII) | st.tuples(bad_lines, eols), max_size=12), st.booleans(), st.data())
def test_good_lines_around_bad_ones_all_come_out(sent: list, quits: bool, data: st.DataObject) -> None:
    wire, events = b"", list[Event]()
    for item in sent:
        if isinstance(item, Request):
            wire += encode_request(item)
            events.append(item)
        else:
            (line, reason), eol = item
            wire += line + eol
            events.append(Refused(reason, eol))
    if quits:
        wire += b"QUIT\nPING\n"
        events.append(Quit(LF))
    assert outcome(Limits(max_line_bytes=300), data.draw(cuts(wire))) == merged(events)


pieces = st.one_of(
    st.binary(max_size=20),
    st.sampled_from(
        [b"SEND ", b"SUBSCRIBE ", b"UNSUBSCRIBE ", b"PING", b"QUIT", b"x", b"12", b"*", b" ", b"\t"]
    ),
    st.sampled_from([b"\n", b"\r\n", b"\r", "я".encode(), b"\xd1", b"y" * 30]),
    st.sampled_from([b"SEND a b\n", b"SEND a b\r\n", b"SUBSCRIBE 1 a*\n"]),
)
any_limits = st.builds(Limits, st.sampled_from([8, 24, 1000]), charsets, st.booleans())


@given(any_limits, st.lists(pieces, max_size=16).map(b"".join), st.data())
def test_any_bytes_give_the_same_events_however_cut(limits: Limits, wire: bytes, data: st.DataObject) -> None:
    assert outcome(limits, data.draw(cuts(wire))) == outcome(limits, [wire])


@given(any_limits, st.lists(pieces, max_size=16))
def test_time_is_asked_for_exactly_while_a_line_is_unfinished(limits: Limits, chunks: list[bytes]) -> None:
    source = Connection(limits)
    has_quit = False
    for now, chunk in enumerate(chunks):
        has_quit |= Quit in map(type, list(source.receive(chunk, float(now))))
    data = b"".join(chunks)
    is_unfinished = bool(data) and not data.endswith(LF) and not has_quit
    assert (source.deadline() is not None) is is_unfinished
    assert (source.buffered > 0) is is_unfinished
