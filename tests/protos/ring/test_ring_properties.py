"""Random input, cut at random places (ring.md 2, 3, 5). A failure prints how to repeat it."""

from hypothesis import given
from hypothesis import strategies as st

from protos.ring import (
    HEAD_BYTES,
    MAX_FIELD_NAME,
    MAX_GROUP,
    MAX_SENDER,
    Acks,
    BreakLinkForced,
    ClientConnection,
    ClientRequest,
    Connection,
    Create,
    Destroy,
    Find,
    Frame,
    Leader,
    LinkBroken,
    Message,
    Open,
    Operation,
    Pull,
    Push,
    User,
    echo_of,
    encode_beacon,
    encode_frame,
    encode_message,
    encode_record,
    encode_request,
    parse_beacon,
    parse_frame,
)
from protos.types import PeerError
from tests.protos.feeding import cuts
from tests.protos.ring.samples import LARGEST_MESSAGE, TIGHT, asked, linked, merged

ttls = st.integers(0, 0xFFFF)
names = st.binary(min_size=1, max_size=255)
messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(User, st.binary(max_size=2_000)),
    st.builds(Leader, names, ttls),
    st.builds(LinkBroken, names, ttls),
    st.builds(BreakLinkForced, ttls),
)


def words(max_size: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=1, max_size=max_size).map(lambda name: name.replace(b"\0", b"x"))


hosts = st.text("abcdefghijklmnopqrstuvwxyz0123456789.-", min_size=1, max_size=150).map(str.encode)
nodes = st.builds(lambda host, rest: host + rest, hosts, st.just(b"") | words(40).map(lambda end: b":" + end))
services = st.integers(1, 65535).map(lambda port: b"%d" % port) | st.sampled_from([b"ring", b"http-alt"])
groups = st.integers(1, MAX_GROUP)
beacons = st.builds(Find, groups, names) | st.builds(
    Open, groups, st.binary(min_size=1, max_size=200), nodes, services
)
frames = st.builds(
    Frame,
    st.sampled_from(Operation),
    words(MAX_SENDER),
    words(MAX_FIELD_NAME),
    st.binary(max_size=2_000),
    st.binary(min_size=16, max_size=16),
)


def requests(max_body_bytes: int) -> st.SearchStrategy[ClientRequest]:
    records = st.lists(st.binary(max_size=max_body_bytes).map(encode_record), min_size=1, max_size=5)
    queues = st.sampled_from([b"orders", b"bills", b"q" * 254])  # few, so that runs arise

    def of(kind: type[ClientRequest], *rest: st.SearchStrategy) -> st.SearchStrategy[ClientRequest]:
        return queues.flatmap(
            lambda queue: st.builds(kind, st.just(echo_of(b"checkin", queue)), st.just(queue), *rest)
        )

    return st.one_of(of(Push, records), of(Pull, st.integers(1, 40)), of(Create), of(Destroy))


# --- round trips


@given(st.lists(messages, max_size=12), st.data())
def test_messages_come_back_as_they_were_encoded(sent: list[Message], data: st.DataObject) -> None:
    wire = b"".join(map(encode_message, sent))
    assert linked(data.draw(cuts(wire))) == (sent, None)


@given(beacons)
def test_beacons_come_back_as_they_were_encoded(beacon: Open | Find) -> None:
    assert parse_beacon(encode_beacon(beacon)) == beacon


@given(frames)
def test_frames_come_back_as_they_were_encoded(frame: Frame) -> None:
    assert parse_frame(encode_frame(frame)) == frame


@given(st.lists(requests(300), max_size=8), st.data())
def test_requests_come_back_as_they_were_encoded(sent: list[ClientRequest], data: st.DataObject) -> None:
    wire = b"".join(map(encode_request, sent))
    assert asked(data.draw(cuts(wire))) == (merged(sent), None)


# --- random input


link_pieces = st.one_of(
    messages.map(encode_message),
    messages.map(lambda message: encode_message(message)[:-1]),
    st.binary(max_size=20),
    st.sampled_from([b"USER", b"LOOP", b"USER\0\0", b"LOOP\0\3", b"USER\x40\1", b"\0\0\0", b"A"]),
)
client_pieces = st.one_of(
    requests(45).map(encode_request),
    requests(45).map(lambda request: encode_request(request)[:-1]),
    st.binary(max_size=60),
    st.sampled_from(
        [bytes(255), bytes(510), b"\0\0\0\1", b"\0\0\0\2", b"q" * 255, b"\0\0\1\x90", b"\0\0\1\x91"]
    ),
)


@given(st.lists(link_pieces, max_size=8).map(b"".join), st.data())
def test_any_octets_give_the_same_messages_however_cut_and_at_most_a_peer_error(
    wire: bytes, data: st.DataObject
) -> None:
    assert linked(data.draw(cuts(wire))) == linked([wire])


@given(st.lists(client_pieces, max_size=8).map(b"".join), st.data())
def test_any_octets_give_the_same_requests_however_cut_and_at_most_a_peer_error(
    wire: bytes, data: st.DataObject
) -> None:
    assert asked(data.draw(cuts(wire)), TIGHT) == asked([wire], TIGHT)


@given(st.lists(link_pieces, max_size=12), st.lists(client_pieces, max_size=12))
def test_little_is_held_and_time_is_asked_for_only_while_something_is_unfinished(
    on_link: list[bytes], from_client: list[bytes]
) -> None:
    for source, chunks, most in (
        (Connection(TIGHT), on_link, LARGEST_MESSAGE),
        (ClientConnection(TIGHT), from_client, HEAD_BYTES + TIGHT.max_message_bytes),
    ):
        try:
            for now, chunk in enumerate(chunks):
                for _ in source.receive(chunk, float(now)):
                    pass
                assert source.buffered < most
                assert (source.deadline() is None) or source.deadline() >= TIGHT.request_timeout_s
                assert not source.buffered or source.deadline() is not None
        except PeerError:
            assert (source.buffered, source.deadline()) == (0, None)


@given(st.binary(max_size=600) | st.binary(max_size=300).map(lambda rest: b"OPEN" + rest))
def test_any_datagram_is_a_beacon_or_refused(datagram: bytes) -> None:
    try:
        beacon = parse_beacon(datagram)
    except PeerError:
        return
    assert encode_beacon(beacon) == datagram


@given(
    st.binary(max_size=1_200)
    | frames.map(encode_frame).flatmap(
        lambda wire: st.binary(max_size=4).map(lambda end: wire[: len(wire) - len(end)] + end)
    )
)
def test_any_payload_is_a_frame_or_none(payload: bytes) -> None:
    frame = parse_frame(payload)
    if frame is not None:
        assert parse_frame(encode_frame(frame)) == frame


@given(st.lists(st.sampled_from([b"A", b"AAA", b"", b"B", b"AB"]), max_size=6))
def test_acknowledgements_before_anything_else_all_count(chunks: list[bytes]) -> None:
    acks, counted = Acks(), 0
    try:
        for chunk in chunks:
            for count in acks.receive(chunk):
                counted += count
    except PeerError:
        assert b"B" in b"".join(chunks)
    assert counted == len(b"".join(chunks).partition(b"B")[0])
