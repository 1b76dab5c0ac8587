"""Every encoder and every reply parser, byte for byte (tmq.md 2.2, 3, 4)."""

import pytest

from protos.tmq import (
    EMPTY,
    MQID_BYTES,
    UNUSABLE,
    Dequeue,
    Dialect,
    Enqueue,
    Limits,
    Operation,
    Select,
    encode_close,
    encode_count,
    encode_dnq,
    encode_enq,
    encode_failure,
    encode_record,
    encode_request,
    encode_select,
    encode_status,
    mqid_of,
    nil_mqid,
    parse_count,
    parse_length,
    parse_mqid,
    parse_status,
    reply_bytes,
)
from protos.types import LocalError, PeerError
from tests.protos.tmq_samples import ORDERS

DOCUMENT, REFERENCE = Dialect.DOCUMENT, Dialect.REFERENCE
WITHOUT_STATUS = [Operation.OPEN, Operation.DNQ, Operation.SELECT]
WITH_STATUS = [operation for operation in Operation if operation not in WITHOUT_STATUS]


def test_mqid_is_the_sha256_of_the_name_in_lower_case_hex() -> None:
    # 2.2; the digest is the well-known one of "abc" (FIPS 180-2)
    assert mqid_of(b"abc") == b"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert len(mqid_of(b"\xff" * 255)) == MQID_BYTES


def test_default_limits_are_those_of_the_spec() -> None:
    limits = Limits()
    assert (limits.max_message_bytes, limits.max_discard_bytes) == (1_048_576, 16_777_216)  # 7.1
    assert (limits.max_name_bytes, limits.max_name_discard_bytes) == (255, 65_536)  # 2.1
    assert (limits.lone_five_grace_s, limits.request_timeout_s) == (0.2, 30.0)  # 3.1, 7.3
    assert not limits.code5_mqid_is_select


def test_a_run_is_encoded_as_so_many_requests() -> None:
    assert encode_request(DOCUMENT, Dequeue(ORDERS, 3)) == encode_dnq(ORDERS) * 3
    assert encode_request(DOCUMENT, Select(ORDERS, 2)) == encode_select(ORDERS) * 2
    run = Enqueue(ORDERS, [encode_record(b"a"), encode_record(b"")])
    assert encode_request(DOCUMENT, run) == encode_enq(ORDERS, b"a") + encode_enq(ORDERS, b"")


@pytest.mark.parametrize(
    "encode", [encode_close, encode_dnq, encode_select, lambda mqid: encode_enq(mqid, b"")]
)
@pytest.mark.parametrize("mqid", [b"", ORDERS[:-1], ORDERS + b"0"])
def test_an_mqid_of_another_length_is_our_own_mistake(encode, mqid: bytes) -> None:
    with pytest.raises(LocalError, match="64 bytes"):
        encode(mqid)


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("operation", WITH_STATUS)
def test_zero_is_success_except_for_the_documents_enq(dialect: Dialect, operation: Operation) -> None:
    one_is_success = dialect is DOCUMENT and operation is Operation.ENQ  # 3, 4.1
    assert encode_status(dialect, operation, ok=True) == (b"\1" if one_is_success else b"\0")
    assert encode_status(dialect, operation, ok=False) == (b"\0" if one_is_success else b"\1")
    for ok in (True, False):
        assert parse_status(dialect, operation, encode_status(dialect, operation, ok)) is ok
    assert encode_failure(dialect, operation) == encode_status(dialect, operation, ok=False)  # 3.4
    assert reply_bytes(dialect, operation) == 1


@pytest.mark.parametrize("operation", WITHOUT_STATUS)
def test_operations_without_a_status(operation: Operation) -> None:
    with pytest.raises(LocalError, match=operation.name):
        encode_status(DOCUMENT, operation, ok=True)
    with pytest.raises(LocalError, match=operation.name):
        parse_status(DOCUMENT, operation, b"\0")


@pytest.mark.parametrize("reply", [b"", b"\2", b"\0\0"])
def test_invalid_status_is_refused(reply: bytes) -> None:
    with pytest.raises(ValueError, match="not a status"):
        parse_status(DOCUMENT, Operation.ENQ, reply)


def test_nil_mqid() -> None:
    # 2.2
    assert nil_mqid(DOCUMENT) == b"<nil>" + b"0" * 59
    assert nil_mqid(REFERENCE) == b"<NIL>" + b"0" * 27 + b"<NIL>" + b"0" * 27
    for dialect in Dialect:
        assert parse_mqid(nil_mqid(dialect)) is None
        assert encode_failure(dialect, Operation.OPEN) == nil_mqid(dialect)
        assert reply_bytes(dialect, Operation.OPEN) == MQID_BYTES
    assert parse_mqid(ORDERS) == ORDERS
    with pytest.raises(ValueError, match="63 bytes"):
        parse_mqid(ORDERS[1:])


def test_counts_are_i64_or_i32() -> None:
    # 3, 4.1
    assert encode_count(DOCUMENT, 258) == b"\0\0\0\0\0\0\1\2"
    assert encode_count(REFERENCE, 258) == b"\0\0\1\2"
    assert encode_count(DOCUMENT, UNUSABLE) == b"\xff" * 8 == encode_failure(DOCUMENT, Operation.SELECT)
    assert encode_count(REFERENCE, UNUSABLE) == b"\xff" * 4 == encode_failure(REFERENCE, Operation.SELECT)
    for dialect in Dialect:
        for count in (UNUSABLE, 0, 1, 2**31 - 1):
            assert parse_count(dialect, encode_count(dialect, count)) == count
        assert reply_bytes(dialect, Operation.SELECT) == len(encode_count(dialect, 0))


def test_a_count_that_does_not_fit_is_the_largest_that_does() -> None:
    # 4.1
    assert encode_count(REFERENCE, 2**31) == b"\x7f\xff\xff\xff"
    assert parse_count(DOCUMENT, encode_count(DOCUMENT, 2**31)) == 2**31


def test_the_reply_to_dnq_is_the_record_or_empty() -> None:
    # 3
    assert EMPTY == b"\xff\xff\xff\xff" == encode_failure(DOCUMENT, Operation.DNQ)
    assert encode_record(b"hi") == b"\0\0\0\2hi"
    assert parse_length(encode_record(b"hi")[:4]) == 2
    assert parse_length(encode_record(b"")) == 0
    assert parse_length(EMPTY) is None
    assert reply_bytes(REFERENCE, Operation.DNQ) == 4
    with pytest.raises(ValueError, match="-2"):
        parse_length(b"\xff\xff\xff\xfe")


def test_a_peer_error_has_a_label_and_a_text() -> None:
    error = PeerError("unknown_code", "0x0a")
    assert (error.reason, error.detail, str(error)) == ("unknown_code", "0x0a", "unknown_code: 0x0a")
    assert str(PeerError("truncated")) == "truncated"
