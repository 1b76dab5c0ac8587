"""The vectors, both directions: whole, octet by octet, at every split (ring.md 2, 3, 5)."""

import pytest

from protos.ring import (
    HEAD_BYTES,
    Acks,
    Limits,
    Operation,
    Refused,
    Unusable,
    encode_beacon,
    encode_frame,
    encode_message,
    encode_record,
    encode_refusal,
    encode_reply,
    encode_request,
    parse_beacon,
    parse_frame,
    parse_reply,
)
from protos.types import PeerError
from tests.protos.feeding import cut, one_by_one
from tests.protos.ring.samples import (
    VECTORS,
    asked,
    beacon_of,
    frame_of,
    linked,
    merged,
    message_of,
    name,
    request_of,
    vectors,
    wire_of,
)

ON_LINK = vectors("link")
FRAMES = [vector for vector in ON_LINK if "operation" in vector["fields"]]
NO_FRAMES = [vector for vector in ON_LINK if "frame" in vector["fields"]]
ASKED = [vector for vector in vectors("client") if "refused" not in vector["fields"]]
REFUSED = [vector for vector in vectors("client") if "refused" in vector["fields"]]
# which our nodes never send
AS_SENT = [vector for vector in ASKED if vector["name"] != "pull with a message"]
ANSWERED = vectors("client back")
SPLITS = 600  # number of places in a longer vector, spread evenly and all around its head


def places(data: bytes) -> list[int]:
    """Return the places to split at."""
    if len(data) <= 2 * SPLITS:
        return list(range(len(data) + 1))
    return [*range(12), *range(12, len(data), len(data) // SPLITS), *range(len(data) - 12, len(data) + 1)]


def test_there_are_vectors_of_every_kind() -> None:
    assert [len(each) for each in (ON_LINK, vectors("UDP"), ASKED, ANSWERED)] == [36, 7, 10, 4]
    assert {vector["direction"] for vector in VECTORS} == {
        "link",
        "link back",
        "UDP",
        "client",
        "client back",
    }


# --- links (2)


@pytest.mark.parametrize("vector", ON_LINK, ids=name)
def test_message_vector_is_decoded_and_encoded(vector: dict) -> None:
    wire = wire_of(vector)
    message = message_of(vector["fields"], wire)
    assert linked([wire]) == ([message], None)
    if not isinstance(message, Unusable):
        assert encode_message(message) == wire


@pytest.mark.parametrize("vector", ON_LINK, ids=name)
def test_the_cut_of_a_links_octets_does_not_matter(vector: dict) -> None:
    data = wire_of(vector) * 2
    whole = ([message_of(vector["fields"], wire_of(vector))] * 2, None)
    if len(data) < 4_000:
        assert linked(one_by_one(data)) == whole
    for place in places(data):
        assert linked(cut(data, [place])) == whole, place


def test_all_messages_of_a_link_may_follow_each_other() -> None:
    data = b"".join(map(wire_of, ON_LINK))
    whole = ([message_of(vector["fields"], wire_of(vector)) for vector in ON_LINK], None)
    assert linked([data]) == whole
    assert linked(one_by_one(data)) == whole


@pytest.mark.parametrize("vector", vectors("link", error=True), ids=name)
def test_invalid_message_ends_a_link_after_good_ones(vector: dict) -> None:
    good = ON_LINK[0]
    data = wire_of(good) + wire_of(vector)
    for chunks in ([data], one_by_one(data), [data + wire_of(good)]):
        messages, reason = linked(chunks)
        assert messages == [message_of(good["fields"], b"")]
        assert reason in ("unknown_type", "too_long")


def test_acknowledgements_are_counted_until_something_else_comes() -> None:
    """Check that acknowledgements are counted up to other input (2.2, 2.5)."""
    for vector in vectors("link back"):
        assert list(Acks().receive(wire_of(vector))) == [vector["fields"].get("count", 1)]
    for vector in vectors("link back", error=True):
        acks = Acks()
        found = acks.receive(b"AA" + wire_of(vector) + b"A")
        assert next(found) == 2
        with pytest.raises(PeerError, match="not_an_ack"):
            next(found)
        assert list(acks.receive(b"A")) == []


# --- beacons (3)


@pytest.mark.parametrize("vector", vectors("UDP"), ids=name)
def test_beacon_vector_is_decoded_and_encoded(vector: dict) -> None:
    beacon = beacon_of(vector["fields"])
    assert parse_beacon(wire_of(vector)) == beacon
    assert encode_beacon(beacon) == wire_of(vector)


@pytest.mark.parametrize("vector", vectors("UDP", error=True), ids=name)
def test_invalid_beacon_is_refused(vector: dict) -> None:
    with pytest.raises(PeerError):
        parse_beacon(wire_of(vector))


# --- frames in the ring (5.3)


@pytest.mark.parametrize("vector", FRAMES, ids=name)
def test_frame_vector_is_decoded_and_encoded(vector: dict) -> None:
    payload = wire_of(vector)[6:]
    frame = frame_of(vector["fields"], payload)
    assert parse_frame(payload) == frame
    assert encode_frame(frame) == payload


@pytest.mark.parametrize("vector", NO_FRAMES, ids=name)
def test_invalid_frame_is_a_user_message(vector: dict) -> None:
    assert parse_frame(wire_of(vector)[6:]) is None


# --- the client port (5.2)


@pytest.mark.parametrize("vector", ASKED, ids=name)
def test_request_vector_is_decoded(vector: dict) -> None:
    assert asked([wire_of(vector)]) == ([request_of(vector["fields"], wire_of(vector))], None)


@pytest.mark.parametrize("vector", AS_SENT, ids=name)
def test_a_request_is_encoded_as_the_vector_has_it(vector: dict) -> None:
    assert encode_request(request_of(vector["fields"], wire_of(vector))) == wire_of(vector)


@pytest.mark.parametrize("vector", ASKED, ids=name)
def test_the_cut_of_a_clients_octets_does_not_matter(vector: dict) -> None:
    data = wire_of(vector) * 2
    whole = (merged([request_of(vector["fields"], wire_of(vector))] * 2), None)
    assert asked(one_by_one(data)) == whole
    for place in range(len(data) + 1):
        assert asked(cut(data, [place])) == whole, place


@pytest.mark.parametrize("vector", REFUSED, ids=name)
def test_a_request_that_is_refused_is_answered_in_words(vector: dict) -> None:
    """Check that a refused request is answered with a text (5.6)."""
    fields, wire = vector["fields"], wire_of(vector)
    operation, close = Operation[fields["operation"].upper()], "close" in fields
    refused = Refused(operation, wire[4 : HEAD_BYTES - 4], fields["refused"], close)
    answer = encode_refusal(refused)
    assert answer == b"\0\0\0\4" + wire[4 : HEAD_BYTES - 4] + encode_record(fields["answer"].encode())
    follower = wire_of(ASKED[0])
    expected = [refused] if close else [refused, request_of(ASKED[0]["fields"], follower)]
    for place in range(len(wire + follower) + 1):
        assert asked(cut(wire + follower, [place])) == (expected, None), place
    assert asked(one_by_one(wire + follower)) == (expected, None)


@pytest.mark.parametrize("vector", vectors("client", error=True), ids=name)
def test_unknown_operation_ends_input_after_good_requests(vector: dict) -> None:
    """Check that an unknown operation ends the input after good requests (5.6)."""
    good = ASKED[1]
    data = wire_of(good) + wire_of(vector)
    for chunks in ([data], one_by_one(data), [data + wire_of(good)]):
        assert asked(chunks) == ([request_of(good["fields"], wire_of(good))], "unknown_operation")


@pytest.mark.parametrize("vector", ANSWERED, ids=name)
def test_a_reply_is_encoded_as_the_vector_has_it_and_read_back(vector: dict) -> None:
    fields, wire = vector["fields"], wire_of(vector)
    operation, message = Operation[fields["operation"]], bytes.fromhex(fields["message"])
    assert encode_reply(operation, wire[4 : HEAD_BYTES - 4], message) == wire
    head = parse_reply(wire[:HEAD_BYTES])
    assert head == (operation, fields["sender"].encode(), fields["queue"].encode(), len(message))


def test_limits_are_those_of_the_spec() -> None:
    """Check that limits are those of the spec (5.2, 5.6)."""
    assert Limits() == Limits(max_message_bytes=1 << 20, max_discard_bytes=16 << 20, request_timeout_s=30.0)
