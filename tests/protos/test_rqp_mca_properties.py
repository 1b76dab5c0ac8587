"""Random input, cut at random places (rqp_mca.md 1). A failure prints how to repeat it."""

from hypothesis import given
from hypothesis import strategies as st

from protos.rqp_mca import (
    MAX_U32,
    AvailableConfirm,
    AvailableRequest,
    Confirm,
    Data,
    DataConfirm,
    Limits,
    MessageType,
    Profile,
    QueueConfirm,
    QueueRequest,
    ReceiverConnection,
    Request,
    SenderConnection,
    encode_data,
    encode_message,
    encode_record,
)
from protos.types import PeerError
from tests.protos.feeding import cuts
from tests.protos.rqp_mca_samples import HEAD_BYTES, TIGHT, merged, outcome

profiles = st.sampled_from(Profile)
numbers = st.sampled_from([0, 7, MAX_U32]) | st.integers(0, MAX_U32)  # few, so that runs arise
kinds = st.sampled_from(MessageType)


def requests(max_body_bytes: int) -> st.SearchStrategy[Request]:
    records = st.binary(max_size=max_body_bytes).map(encode_record)
    return st.one_of(
        st.builds(Data, numbers, kinds, st.lists(records, min_size=1, max_size=20)),
        st.builds(AvailableRequest, numbers),
        st.builds(QueueRequest, numbers),
    )


confirms: st.SearchStrategy[Confirm] = st.one_of(
    st.builds(DataConfirm, st.integers(1, 40)),
    st.builds(AvailableConfirm, numbers),
    st.builds(QueueConfirm, numbers),
)


@given(profiles, st.lists(requests(2_000), max_size=12), st.data())
def test_requests_come_back_as_they_were_encoded(
    profile: Profile, sent: list[Request], data: st.DataObject
) -> None:
    wire = b"".join(encode_message(profile, request) for request in sent)
    source = ReceiverConnection(Limits())
    assert outcome(source, data.draw(cuts(wire))) == (merged(sent), None)
    assert source.profile is (profile if sent else None)


@given(profiles, st.lists(confirms, max_size=12), st.data())
def test_confirms_come_back_as_they_were_encoded(
    profile: Profile, sent: list[Confirm], data: st.DataObject
) -> None:
    wire = b"".join(encode_message(profile, confirm) for confirm in sent)
    assert outcome(SenderConnection(profile, Limits()), data.draw(cuts(wire))) == (merged(sent), None)


@given(profiles, st.lists(requests(40), min_size=1, max_size=12), numbers, kinds, st.data())
def test_good_messages_before_one_too_large_all_come_out(
    profile: Profile, sent: list[Request], number: int, kind: MessageType, data: st.DataObject
) -> None:
    wire = b"".join(encode_message(profile, request) for request in sent)
    wire += encode_data(profile, number, kind, b"m" * 41) + encode_message(profile, sent[0])
    assert outcome(ReceiverConnection(TIGHT), data.draw(cuts(wire))) == (merged(sent), "message_too_large")


pieces = st.one_of(
    st.binary(max_size=60),
    st.lists(st.sampled_from([0, 1, 3, 5, 0x10, 0x30, 0x50]), max_size=24).map(bytes),
    st.builds(encode_message, profiles, requests(45)),
    st.builds(encode_message, profiles, confirms),
)
sides = st.one_of(
    st.just(lambda: ReceiverConnection(TIGHT)),
    profiles.map(lambda profile: lambda: SenderConnection(profile, TIGHT)),
)


@given(sides, st.lists(pieces, max_size=8).map(b"".join), st.data())
def test_any_octets_give_the_same_events_however_cut_and_at_most_a_peer_error(
    side, wire: bytes, data: st.DataObject
) -> None:
    assert outcome(side(), data.draw(cuts(wire))) == outcome(side(), [wire])


@given(sides, st.lists(pieces, max_size=12))
def test_little_is_held_and_time_is_asked_for_only_while_something_is_unfinished(
    side, chunks: list[bytes]
) -> None:
    source = side()
    try:
        for now, chunk in enumerate(chunks):
            for _ in source.receive(chunk, float(now)):
                pass
            assert source.buffered < HEAD_BYTES[source.profile or Profile.WORD] + TIGHT.max_message_bytes
    except PeerError:
        assert (source.buffered, source.deadline()) == (0, None)
    is_unfinished = source.deadline() is not None
    assert outcome(source, []) == ([], "truncated" if is_unfinished else None)
