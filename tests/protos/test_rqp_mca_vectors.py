"""Test the vectors, both directions: whole, by octets, split everywhere, each octet changed (rqp_mca.md 1)."""

import pytest

from protos.rqp_mca import Limits, Profile, encode_message
from protos.types import PeerError
from tests.protos.feeding import cut, one_by_one
from tests.protos.rqp_mca_samples import (
    BAD,
    GOOD,
    HEAD_BYTES,
    VECTORS,
    Source,
    event_of,
    merged,
    outcome,
    profile_of,
    source_of,
)

every_vector = pytest.mark.parametrize("vector", GOOD, ids=lambda vector: vector["name"])


def test_there_are_vectors_of_every_kind() -> None:
    kinds = {(vector["fields"]["profile"], vector["fields"]["message"]) for vector in GOOD}
    assert len(kinds) == 3 * 6
    assert len(BAD) >= 2


@every_vector
def test_vector_is_decoded(vector: dict) -> None:
    source, event = source_of(vector), event_of(vector["fields"])
    assert outcome(source, [bytes.fromhex(vector["wire"])]) == ([event], None)
    assert source.profile is profile_of(vector)


@every_vector
def test_vector_is_encoded(vector: dict) -> None:
    assert encode_message(profile_of(vector), event_of(vector["fields"])).hex() == vector["wire"]


@every_vector
def test_the_cut_of_the_octets_does_not_matter(vector: dict) -> None:
    data = bytes.fromhex(vector["wire"]) * 2
    whole = (merged([event_of(vector["fields"])] * 2), None)
    assert outcome(source_of(vector), [data]) == whole
    assert outcome(source_of(vector), one_by_one(data)) == whole
    for place in range(len(data) + 1):
        assert outcome(source_of(vector), cut(data, [place])) == whole, place


@pytest.mark.parametrize("profile", Profile)
@pytest.mark.parametrize("direction", ["to receiver", "to sender"])
def test_all_vectors_of_a_side_may_follow_each_other(profile: Profile, direction: str) -> None:
    mine = [vector for vector in GOOD if (profile_of(vector), vector["direction"]) == (profile, direction)]
    data = b"".join(bytes.fromhex(vector["wire"]) for vector in mine)
    whole = (merged(event_of(vector["fields"]) for vector in mine), None)
    assert outcome(source_of(mine[0]), [data]) == whole
    assert outcome(source_of(mine[0]), one_by_one(data)) == whole
    for place in range(len(data) + 1):
        assert outcome(source_of(mine[0]), cut(data, [place])) == whole, place


@pytest.mark.parametrize("vector", BAD, ids=lambda vector: vector["name"])
def test_an_error_is_refused_and_spoils_nothing_before_it(vector: dict) -> None:
    good, wire = bytes.fromhex("3000000070"), bytes.fromhex(vector["wire"])
    assert outcome(source_of(vector), [wire])[1] not in (None, "truncated")
    for chunks in ([good + wire], one_by_one(good + wire)):
        events, reason = outcome(source_of(vector), chunks)
        assert (len(events), reason in (None, "truncated")) == (1, False)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_with_any_octet_changed_it_means_something_else_or_is_refused(vector: dict) -> None:
    wire = bytes.fromhex(vector["wire"])
    follow_up = bytes(600)  # completes any input that the changed octet made it wait for, or is no message
    for place in range(len(wire)):
        for value in range(256):
            changed = wire[:place] + bytes([value]) + wire[place + 1 :]
            check_survives(source_of(vector, Limits(max_message_bytes=256)), changed, follow_up)


def check_survives(source: Source, *chunks: bytes) -> None:
    try:
        for chunk in chunks:
            for event in source.receive(chunk, 0.0):
                assert encode_message(source.profile, event) in b"".join(chunks)
            assert source.buffered < HEAD_BYTES[source.profile] + 256
        list(source.receive_eof(0.0))
    except PeerError:
        pass
    assert (source.buffered, source.deadline()) == (0, None)
