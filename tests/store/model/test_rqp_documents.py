"""Queue documents with RQP bindings: validation, and documents of older versions (docs/store.md)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from services.store import QueueDocument, QueueSpec
from services.store.model.duration import STORED
from services.store.model.rqp_binding import DuplicateResult, Protocol
from services.store.model.spec import to_document
from tests.servers import Client
from tests.store.model.test_bindings_documents import limited

u32 = st.integers(0, 0xFFFF_FFFF)
names = st.text(st.characters(min_codepoint=33, max_codepoint=0x2000, exclude_characters=","), min_size=1)
peers = st.lists(names.filter(lambda name: not any(c.isspace() or 0x7F <= ord(c) < 0xA1 for c in name)))
common = {"peers": peers, "reliable": st.booleans(), "maxMessageBytes": st.integers(1, 15 << 20)}
remotes = st.one_of(
    st.fixed_dictionaries({"protocol": st.just("rqp-mca"), "queueId": u32}, optional=common),
    st.fixed_dictionaries({"protocol": st.just("rqp-cast"), "key": u32}, optional=common),
)
numbered = st.fixed_dictionaries(
    {},
    optional={
        "rqpMca": st.fixed_dictionaries({}, optional={"queueId": u32, "exclusive": st.booleans()}),
        "rqpCast": st.fixed_dictionaries(
            {}, optional={"key": u32, "duplicateResult": st.sampled_from(["failure", "success"])}
        ),
    },
)
specs = st.one_of(st.fixed_dictionaries({"remote": remotes}), st.fixed_dictionaries({"bindings": numbered}))


def problem(**spec: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        QueueDocument.model_validate({"metadata": {"name": "orders"}, "spec": spec})
    return str(caught.value)


@given(specs)
def test_document_round_trips(spec: dict[str, Any]) -> None:
    read = QueueDocument.model_validate({"metadata": {"name": "orders"}, "spec": spec}).queue
    assert QueueDocument.model_validate(to_document("orders", read)).queue == read
    kept = read.model_dump_json(by_alias=True, exclude_defaults=True)
    assert QueueSpec.model_validate_json(kept, context=STORED) == read


def test_defaults() -> None:
    spec = QueueSpec(remote={"protocol": "rqp-mca", "queueId": 7})
    assert spec.remote is not None
    assert (spec.remote.protocol, spec.remote.number) == (Protocol.MCA, 7)
    assert (spec.remote.peers, spec.remote.reliable, spec.remote.max_message_bytes) == ((), True, 1 << 20)
    assert QueueSpec().remote is None
    mca, cast = QueueSpec().bindings.rqp_mca, QueueSpec().bindings.rqp_cast
    assert (mca.queue_id, mca.exclusive) == (None, True)
    assert (cast.key, cast.duplicate_result) == (None, DuplicateResult.FAILURE)


def test_bound_beyond_rqp_mca_is_refused_and_read_from_the_store() -> None:
    """Check that new documents beyond the bound are refused, and stored ones are read (docs/rqp-mca.md)."""
    stored = QueueSpec(remote={"protocol": "rqp-mca", "queueId": 7}).model_dump(by_alias=True, mode="json")
    stored["remote"]["maxMessageBytes"] = (15 << 20) + 1
    error = problem(remote={"protocol": "rqp-mca", "queueId": 7, "maxMessageBytes": (15 << 20) + 1})
    assert "maxMessageBytes is at most 15728640 for protocol rqp-mca: no peer accepts more" in error
    read = QueueSpec.model_validate(stored, context=STORED)
    assert read.remote is not None
    assert read.remote.max_message_bytes == (15 << 20) + 1
    assert read.model_copy(update={"paused": True}).remote == read.remote
    assert (
        QueueSpec(remote={"protocol": "rqp-mca", "queueId": 7, "maxMessageBytes": 15 << 20}).remote
        is not None
    )


def test_numbers_are_separate_for_each_protocol() -> None:
    """Check that the protocols' numbers are separate, with 32 bits each (rqp_mca.md 1.1, rqp_cast.md 2)."""
    spec = QueueSpec(bindings={"rqpMca": {"queueId": 7}, "rqpCast": {"key": 7}})
    assert spec.numbers() == ["rqp-mca 7", "rqp-cast 7"]
    cast = QueueSpec(remote={"protocol": "rqp-cast", "key": 9})
    assert cast.remote is not None
    assert cast.remote.number == 9


@pytest.mark.parametrize("number", [-1, 1 << 32, 1.5, True, "seven"])
@pytest.mark.parametrize("binding", [("rqpMca", "queueId"), ("rqpCast", "key")])
def test_number_outside_32_bits_is_refused(number: object, binding: tuple[str, str]) -> None:
    protocol, name = binding
    assert name in problem(bindings={protocol: {name: number}})


@pytest.mark.parametrize(
    ("remote", "text"),
    [
        ({}, "protocol"),
        ({"protocol": "tmq", "queueId": 1}, "'rqp-mca' or 'rqp-cast'"),
        ({"protocol": "rqp-mca"}, "protocol rqp-mca needs queueId"),
        ({"protocol": "rqp-mca", "queueId": 1, "key": 1}, "key does not apply to protocol rqp-mca"),
        ({"protocol": "rqp-cast", "queueId": 1}, "protocol rqp-cast needs key"),
        ({"protocol": "rqp-cast", "key": 1, "queueId": 1}, "queueId does not apply to protocol rqp-cast"),
        ({"protocol": "rqp-mca", "queueId": 1, "maxMessageBytes": 0}, "maxMessageBytes"),
        ({"protocol": "rqp-mca", "queueId": 1, "maxMessageBytes": 1 << 24}, "maxMessageBytes"),
        ({"protocol": "rqp-mca", "queueId": 1, "peers": "shop"}, "write a list"),
        ({"protocol": "rqp-mca", "queueId": 1, "peers": ["a b"]}, "other than spaces and commas"),
        ({"protocol": "rqp-mca", "queueId": 1, "peers": [""]}, "1 to 255 characters"),
        ({"protocol": "rqp-mca", "queueId": 1, "window": 5}, "Extra inputs are not permitted"),
    ],
)
def test_invalid_remote_is_refused(remote: dict[str, Any], text: str) -> None:
    assert text in problem(remote=remote)


@pytest.mark.parametrize("bindings", [{"rqpMca": {"queueId": 1}}, {"rqpCast": {"key": 1}}])
def test_remote_queue_with_rqp_binding_is_refused(bindings: dict[str, Any]) -> None:
    """Check that this is refused: two systems could forward a message in a loop (rqp_mca.md 2.4, rqp_cast.md 3.2)."""
    text = problem(remote={"protocol": "rqp-mca", "queueId": 1}, bindings=bindings)
    assert "cannot be combined with bindings.rqpMca.queueId, bindings.rqpCast.key" in text


def test_limits_with_and_without_tag_are_read(client: Client) -> None:
    """Check that limits of older versions, with eight words, are read like those of this one, with nine."""
    tagged = QueueSpec(ack_level="memory", max_length=5, bindings={"text": {"publish": "7"}})
    assert limited(client, str(tagged.fields()[1]), 7) == (2, 5)
    assert str(tagged.fields()[1]).endswith(" memory 7 0")
    client.call("FLUSHALL")
    assert limited(client, "5 0 reject 0 20 0 100 fsync 7", 7) == (2, 5)
    client.call("FLUSHALL")
    leads = {"protocol": "rqp-mca", "queueId": 1, "maxMessageBytes": 1}
    remote = QueueSpec(ack_level="fsync", max_length=5, remote=leads)
    assert str(remote.fields()[1]).endswith(" fsync * 1")
    assert limited(client, str(remote.fields()[1]), 7) == (2, 0)
