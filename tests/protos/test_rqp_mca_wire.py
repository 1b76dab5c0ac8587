"""Profiles, numbers, runs, limits and the end of a connection (rqp_mca.md 1, 2.4), with a simulated clock."""

import pytest

from protos.rqp_mca import (
    MAX_RUN,
    RQP_PORT,
    AvailableConfirm,
    AvailableRequest,
    DataConfirm,
    Limits,
    MessageId,
    MessageType,
    Profile,
    QueueConfirm,
    QueueRequest,
    ReceiverConnection,
    SenderConnection,
    encode_available_confirm,
    encode_available_request,
    encode_data,
    encode_data_confirm,
    encode_message,
    encode_queue_confirm,
    encode_queue_request,
)
from protos.types import LocalError, PeerError
from tests.protos.feeding import assert_over, one_by_one
from tests.protos.rqp_mca_samples import HEAD_BYTES, LATE, PATIENT, TIGHT, data_run, outcome

RELIABLE, UNRELIABLE = MessageType
each_profile = pytest.mark.parametrize("profile", Profile)


def receiver(limits: Limits | None = None) -> ReceiverConnection:
    return ReceiverConnection(limits or Limits())


def sender(profile: Profile, limits: Limits | None = None) -> SenderConnection:
    return SenderConnection(profile, limits or Limits())


def test_the_numbers_are_the_documents() -> None:
    # 1.3
    assert (RQP_PORT, RELIABLE, UNRELIABLE) == (11311, 0, 1)
    assert [(message.name, message.value) for message in MessageId] == [
        ("DATA", 1),
        ("DATA_CONFIRM", 2),
        ("QUEUE_AVAILABLE_REQUEST", 3),
        ("QUEUE_AVAILABLE_CONFIRM", 4),
        ("QUEUE_REQUEST", 5),
        ("QUEUE_CONFIRM", 6),
    ]
    assert (Limits().max_message_bytes, Limits().request_timeout_s) == (1_048_576, 30.0)  # 1.5, 2.4


@pytest.mark.parametrize(
    ("profile", "wires"),
    [
        # 1.2: as the frames are drawn there
        (Profile.PACKED, ["20", "312345678" + "0", "112345678" + "1" + "00000002" + "6869"]),
        (Profile.OCTET, ["02", "03" + "12345678", "01" + "12345678" + "01" + "00000002" + "6869"]),
        (
            Profile.WORD,
            [
                "00000002",
                "00000003" + "12345678",
                "00000001" + "12345678" + "00000001" + "00000002" + "6869",
            ],
        ),
    ],
)
def test_frames_of_each_profile(profile: Profile, wires: list[str]) -> None:
    number = 0x12345678
    assert encode_data_confirm(profile).hex() == wires[0]
    assert encode_available_request(profile, number).hex() == wires[1]
    assert encode_data(profile, number, UNRELIABLE, b"hi").hex() == wires[2]
    assert outcome(sender(profile), [bytes.fromhex(wires[0])]) == ([DataConfirm(1)], None)
    whole = [AvailableRequest(number), data_run(number, b"hi", kind=UNRELIABLE)]
    assert outcome(receiver(), [bytes.fromhex(wires[1] + wires[2])]) == (whole, None)


# --- the first octet (1.2)


def test_first_octet_selects_the_profile() -> None:
    for octet in range(256):
        source = receiver()
        assert source.profile is None
        try:
            list(source.receive(bytes([octet]), 0.0))
        except PeerError as error:
            reason = error.reason
        else:
            reason = None
        if octet == 0:
            assert (source.profile, reason) == (Profile.WORD, None)
        elif 1 <= octet <= 6:
            expected = None if octet in (1, 3, 5) else "unexpected_message"
            assert (source.profile, reason) == (Profile.OCTET, expected)
        elif 0x10 <= octet <= 0x6F:
            expected = None if octet >> 4 in (1, 3, 5) else "unexpected_message"
            assert (source.profile, reason) == (Profile.PACKED, expected)
        else:
            assert (source.profile, reason) == (None, "unknown_profile")
            assert_over(source, LATE)


def test_a_connection_keeps_its_profile() -> None:
    # The second message would be valid in another profile.
    packed, octet = encode_queue_request(Profile.PACKED, 7), encode_queue_request(Profile.OCTET, 7)
    assert outcome(receiver(), [packed + octet]) == ([QueueRequest(7)], "unknown_message")
    assert outcome(receiver(), [octet + packed]) == ([QueueRequest(7)], "bad_uint4")


# --- invalid input (1.2, 1.4, 2.4)


@pytest.mark.parametrize(
    ("wire", "reason"),
    [
        ("100000007" + "2" + "00000000", "bad_type"),
        ("100000007" + "f" + "00000000", "bad_type"),
        ("01" + "00000007" + "02" + "00000000", "bad_type"),
        ("01" + "00000007" + "10" + "00000000", "bad_uint4"),
        ("00000001" + "00000007" + "00000002" + "00000000", "bad_type"),
        ("00000001" + "00000007" + "00000100" + "00000000", "bad_uint4"),
        ("300000007" + "1", "bad_padding"),
        ("500000007" + "8", "bad_padding"),
        ("00000000", "unknown_message"),
        ("00000007", "unknown_message"),
        ("00000010", "bad_uint4"),
        ("00010003", "bad_uint4"),
    ],
)
def test_receiver_refuses_invalid_octets(wire: str, reason: str) -> None:
    data = bytes.fromhex(wire)
    assert outcome(receiver(), [data]) == ([], reason)
    assert outcome(receiver(), one_by_one(data)) == ([], reason)


@pytest.mark.parametrize(
    ("profile", "wire", "reason"),
    [
        (Profile.PACKED, "21", "bad_padding"),
        (Profile.PACKED, "400000007" + "1", "bad_padding"),
        (Profile.PACKED, "02", "unknown_message"),  # an answer in another profile
        (Profile.PACKED, "70", "unknown_message"),
        (Profile.OCTET, "20", "bad_uint4"),
        (Profile.OCTET, "07", "unknown_message"),
        (Profile.WORD, "02000000", "bad_uint4"),
        (Profile.WORD, "0000000f", "unknown_message"),
    ],
)
def test_sender_refuses_invalid_octets(profile: Profile, wire: str, reason: str) -> None:
    good, data = encode_data_confirm(profile), bytes.fromhex(wire)
    assert outcome(sender(profile), [good + data]) == ([DataConfirm(1)], reason)
    assert outcome(sender(profile), one_by_one(good + data)) == ([DataConfirm(1)], reason)


@each_profile
def test_messages_of_the_other_direction_are_not_expected(profile: Profile) -> None:
    requests = [
        encode_data(profile, 7, RELIABLE, b"a"),
        encode_available_request(profile, 7),
        encode_queue_request(profile, 7),
    ]
    confirms = [
        encode_data_confirm(profile),
        encode_available_confirm(profile, 7),
        encode_queue_confirm(profile, 7),
    ]
    for confirm in confirms:
        assert outcome(receiver(), [requests[1] + confirm]) == ([AvailableRequest(7)], "unexpected_message")
    for request in requests:
        got = outcome(sender(profile), [confirms[1] + request])
        assert got == ([AvailableConfirm(7)], "unexpected_message")


# --- runs (1.5)


@each_profile
@pytest.mark.parametrize("count", [MAX_RUN - 1, MAX_RUN, MAX_RUN + 1, 2 * MAX_RUN + 7])
def test_a_run_has_at_most_a_thousand_messages(profile: Profile, count: int) -> None:
    sizes = [min(MAX_RUN, count - done) for done in range(0, count, MAX_RUN)]
    data = list(receiver().receive(encode_data(profile, 7, RELIABLE, b"x") * count, 0.0))
    assert data == [data_run(7, *[b"x"] * size) for size in sizes]
    confirms = list(sender(profile).receive(encode_data_confirm(profile) * count, 0.0))
    assert confirms == [DataConfirm(size) for size in sizes]


@each_profile
def test_another_queue_type_or_message_ends_a_run(profile: Profile) -> None:
    events = [
        data_run(7, b"a", b"", b"ccc"),
        data_run(7, b"d", kind=UNRELIABLE),
        data_run(8, b"e", kind=UNRELIABLE),
        AvailableRequest(8),
        data_run(8, b"f", kind=UNRELIABLE),
        QueueRequest(8),
        QueueRequest(8),
    ]
    wire = b"".join(encode_message(profile, event) for event in events)
    assert list(receiver().receive(wire, 0.0)) == events


@each_profile
def test_confirms_of_a_kind_are_a_run_only_if_they_name_no_queue(profile: Profile) -> None:
    events = [DataConfirm(3), AvailableConfirm(7), AvailableConfirm(7), QueueConfirm(7), DataConfirm(40)]
    wire = b"".join(encode_message(profile, event) for event in events)
    assert list(sender(profile).receive(wire, 0.0)) == events


@each_profile
def test_a_run_is_handed_out_without_waiting_for_the_unfinished_message_behind_it(profile: Profile) -> None:
    source = receiver()
    wire = encode_data(profile, 7, RELIABLE, b"a") * 3
    assert list(source.receive(wire[:-1], 0.0)) == [data_run(7, b"a", b"a")]
    assert source.buffered == HEAD_BYTES[profile]
    assert list(source.receive(wire[-1:], 0.0)) == [data_run(7, b"a")]
    assert source.buffered == 0


# --- limits and the end (1.5, 2.4)


@each_profile
def test_a_body_over_the_limit_ends_it_after_all_that_came_before(profile: Profile) -> None:
    good, large = encode_data(profile, 7, RELIABLE, b"m" * 40), encode_data(profile, 7, RELIABLE, b"m" * 41)
    for chunks in ([good * 2 + large + good], one_by_one(good * 2 + large)):
        assert outcome(receiver(TIGHT), chunks) == ([data_run(7, *[b"m" * 40] * 2)], "message_too_large")
    source = receiver(TIGHT)
    with pytest.raises(PeerError) as caught:
        list(source.receive(large[: HEAD_BYTES[profile]], 0.0))  # before any octet of the body has arrived
    assert caught.value.detail == "41 octets for queue 7"
    assert_over(source, LATE)


@each_profile
def test_fin_inside_a_message_cuts_it_short(profile: Profile) -> None:
    good = encode_available_request(profile, 7)
    for wire in (encode_data(profile, 7, RELIABLE, b"abc"), encode_queue_request(profile, 7)):
        for size in range(1, len(wire)):
            assert outcome(receiver(), [good + wire[:size]]) == ([AvailableRequest(7)], "truncated")
    confirm = encode_queue_confirm(profile, 7)
    for size in range(1, len(confirm)):
        assert outcome(sender(profile), [confirm[:size]]) == ([], "truncated")


@each_profile
def test_fin_between_messages_is_a_good_end(profile: Profile) -> None:
    source = receiver()
    assert list(source.receive(encode_queue_request(profile, 7), 0.0)) == [QueueRequest(7)]
    assert list(source.receive_eof(0.0)) == []
    assert_over(source, LATE)


def test_fin_before_anything_is_a_good_end() -> None:
    source = receiver()
    assert list(source.receive(b"", 0.0)) == []
    assert list(source.receive_eof(0.0)) == []
    assert source.profile is None


@each_profile
def test_a_message_may_stay_unfinished_for_the_request_timeout(profile: Profile) -> None:
    wire = encode_data(profile, 7, RELIABLE, b"abc")
    for size in range(1, len(wire)):
        source = receiver(PATIENT)
        assert source.deadline() is None
        list(source.receive(wire[:size], 5.0))
        assert source.deadline() == 37.0
        assert list(source.on_time(36.5)) == []
        with pytest.raises(PeerError, match="request_timeout"):
            list(source.on_time(37.0))
        assert_over(source, LATE)


@each_profile
def test_the_timeout_counts_from_the_first_octet_of_that_message(profile: Profile) -> None:
    source = receiver(PATIENT)
    wire = encode_data(profile, 7, RELIABLE, b"abc")
    list(source.receive(wire[:1], 1.0))
    for place in range(1, len(wire) - 1):
        list(source.receive(wire[place : place + 1], 2.0 + place / 128))
        assert source.deadline() == 33.0  # a single octet now and then does not help
    assert list(source.receive(wire[-1:] + wire[:1], 20.0)) == [data_run(7, b"abc")]
    assert source.deadline() == 52.0
    list(source.receive(wire[1:], 21.0))
    assert source.deadline() is None
    assert list(source.on_time(1e9)) == []


def test_restart_clock_restarts_the_time_limit() -> None:
    source = receiver(PATIENT)
    source.restart_clock(0.5)
    assert source.deadline() is None
    list(source.receive(b"\x30\0", 1.0))
    source.restart_clock(1_000.0)
    assert source.deadline() == 1_032.0


# --- misuse


@each_profile
@pytest.mark.parametrize("number", [-1, 1 << 32, 1 << 36])
def test_encoding_a_number_beyond_uint32_is_a_local_error(profile: Profile, number: int) -> None:
    for encode in (
        encode_available_request,
        encode_available_confirm,
        encode_queue_request,
        encode_queue_confirm,
    ):
        with pytest.raises(LocalError, match="uint32"):
            encode(profile, number)
    with pytest.raises(LocalError, match="uint32"):
        encode_data(profile, number, RELIABLE, b"")
