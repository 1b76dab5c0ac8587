"""Test the vectors at codec level, both directions: whole, byte by byte, split everywhere, each byte changed."""

import json
from pathlib import Path

import pytest

from protos.pubsub import (
    Charset,
    Connection,
    Error,
    Event,
    Limits,
    Ping,
    Reason,
    Refused,
    Request,
    Send,
    Subscribe,
    encode_reply,
    encode_request,
    parse_reply,
)
from tests.protos.feeding import cut, one_by_one
from tests.protos.pubsub_samples import CRLF, LF, event_of, events_of, merged, outcome

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "pubsub.json").read_text())
# The requests of each conversation, one line a step, written by hand; "-" is a step that only waits.
MEANING = {
    "exact and prefix": "Subscribe Subscribe Send -",
    "crlf is mirrored": "Subscribe Send -",
    "empty message": "Subscribe Send -",
    "spaces in the message are kept": "Subscribe Send -",
    "identifier in use": "Subscribe Subscribe",
    "a prefix does not match a shorter tag": "Subscribe Send Send Send -",
}
# The reason why the first line of the others is refused (2, 2.1). All of them end in a good SEND.
REFUSALS = {
    "error: 'SEND x\\n'": Reason.NO_MESSAGE,
    "error: 'SEND  x m\\n'": Reason.BAD_TAG,
    "error: 'SEND a*b m\\n'": Reason.BAD_TAG,
    "error: 'SUBSCRIBE x news\\n'": Reason.BAD_IDENTIFIER,
    "error: 'SUBSCRIBE 1 *\\n'": Reason.BAD_PATTERN,
    "error: 'SUBSCRIBE 1 a*b\\n'": Reason.BAD_PATTERN,
    "error: 'SUBSCRIBE 1\\n'": Reason.BAD_PATTERN,
    "error: 'SUBSCRIBE 1 a b\\n'": Reason.BAD_PATTERN,
    "error: 'send x m\\n'": Reason.UNKNOWN_VERB,
    "error: '\\n'": Reason.UNKNOWN_VERB,
    "error: 'SEND x a\\tb\\n'": Reason.BAD_MESSAGE,
    "error: 'HELLO\\n'": Reason.UNKNOWN_VERB,
}

every_vector = pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])


def sends_of(vector: dict) -> list[bytes]:
    return [step["send"].encode() for step in vector["steps"] if step["send"]]


def replies_of(vector: dict) -> list[bytes]:
    return [line.encode() for step in vector["steps"] for line in step["expect"]]


def meaning_of(event: Event) -> str | Reason:
    return event.reason if isinstance(event, Refused) else type(event).__name__


@every_vector
def test_line_vector_is_decoded(vector: dict) -> None:
    name = vector["name"]
    wanted = [REFUSALS[name], "Send"] if name in REFUSALS else MEANING[name].replace("-", "").split()
    assert [meaning_of(event_of(send)) for send in sends_of(vector)] == wanted


@every_vector
def test_each_line_is_encoded_as_the_vector_has_it(vector: dict) -> None:
    for send in sends_of(vector):
        event = event_of(send)
        if isinstance(event, Request):
            assert encode_request(event) == send


@every_vector
def test_each_reply_parses_and_is_encoded_as_the_vector_has_it(vector: dict) -> None:
    for line in replies_of(vector):
        reply = parse_reply(line)
        eol = CRLF if line.endswith(CRLF) else LF if line.endswith(LF) else b""
        assert encode_reply(reply, eol) == line
        assert isinstance(reply, Error) is line.startswith(b"ERROR")


@every_vector
def test_the_cut_of_the_bytes_does_not_matter(vector: dict) -> None:
    data = b"".join(sends_of(vector))
    whole = outcome(Limits(), [data])
    assert whole == merged(event_of(send) for send in sends_of(vector))
    assert outcome(Limits(), one_by_one(data)) == whole
    for place in range(len(data) + 1):
        assert outcome(Limits(), cut(data, [place])) == whole, place


@pytest.mark.parametrize(
    "limits",
    [Limits(), Limits(charset=Charset.UTF8), Limits(strict=True, max_line_bytes=12)],
    ids=["ascii", "utf-8", "strict and short"],
)
def test_with_any_byte_changed_only_events_come_out(limits: Limits) -> None:
    sends = {send for vector in VECTORS for send in sends_of(vector)}
    for send in sends:
        for place in range(len(send)):
            before, after = send[:place], send[place + 1 :]
            for value in range(256):
                check_survives(limits, before + bytes([value]) + after)


def check_survives(limits: Limits, data: bytes) -> None:
    connection = Connection(limits)
    events = [*connection.receive(data, 0.0), *connection.receive(b"\nSEND x ok\n", 0.0)]
    assert all(isinstance(event, Event) for event in events)
    last = events[-1]
    assert isinstance(last, Send)
    assert last.block.endswith(b"SEND x ok\n")  # any error ended with its line (2.4)
    assert connection.buffered == 0


def test_vectors_mean_the_same_on_any_listener() -> None:
    data = b"".join(send for vector in VECTORS for send in sends_of(vector))
    plain = outcome(Limits(), [data])
    strict = [
        Refused(Reason.UNKNOWN_VERB, event.eol) if event == Refused(Reason.UNKNOWN_HERE, event.eol) else event
        for event in outcome(Limits(strict=True), [data])
    ]
    assert strict == plain  # 2.2: only the list of supported verbs differs
    assert outcome(Limits(charset=Charset.UTF8), [data]) == plain  # 2.1
    assert {type(event) for event in plain} == {Send, Subscribe, Refused}
    assert events_of(b"PING\n") == [Ping(LF)]
