"""Queue documents: validation, and round trips."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from services.store import QueueDocument, QueueSpec
from services.store.model.duration import MAX_NUMBER, STORED, UNIT_MS, format_duration
from services.store.model.keys import DomainKeys, RegistryKeys
from services.store.model.spec import (
    DeletionPolicy,
    Delivery,
    Overflow,
    check_name,
    replicas_of,
    to_document,
)

NAME = {"metadata": {"name": "orders"}}
durations = st.builds(lambda n, unit: f"{n}{unit}", st.integers(0, 10_000), st.sampled_from(sorted(UNIT_MS)))
specs = st.builds(
    QueueSpec,
    domain=st.from_regex(r"[A-Za-z0-9_.-]{1,63}", fullmatch=True),
    max_length=st.integers(0, 1 << 40),
    max_bytes=st.integers(0, 1 << 40),
    overflow=st.sampled_from(Overflow),
    message_ttl=durations,
    visibility_timeout=durations.filter(lambda written: int(written.rstrip("dhms")) > 0),
    max_deliveries=st.integers(0, 1000),
    ack_level=st.sampled_from(("memory", "fsync", "replicated:1", "replicated:99")),
    delivery=st.sampled_from(Delivery),
    paused=st.booleans(),
)


def problem(**spec: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        QueueDocument.model_validate({**NAME, "spec": spec})
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "ms"),
    [("0s", 0), ("5ms", 5), ("30s", 30_000), ("2m", 120_000), ("1h", 3_600_000), ("7d", 604_800_000)],
)
def test_duration_is_a_number_with_a_unit(text: str, ms: int) -> None:
    assert QueueSpec(message_ttl=text).message_ttl == ms


@pytest.mark.parametrize(
    "text", ["", "s", "30", "30 s", "-1s", "1.5s", "30S", "1w", "1m30s", "30s\n", "\u0663s"]
)
def test_invalid_duration_is_refused_with_advice(text: str) -> None:
    assert "write a duration as a whole number and ms, s, m, h or d, as in 30s" in problem(messageTTL=text)


@pytest.mark.parametrize("text", [f"{10**15}ms", f"{10**12}s", f"{10**10}m", f"{10**9}h", f"{10**8}d"])
def test_duration_beyond_exact_numbers_is_refused(text: str) -> None:
    assert "at most 15 digits of ms, 12 of s, 10 of m, 9 of h, 8 of d" in problem(messageTTL=text)


@pytest.mark.parametrize(("digits", "unit"), [(15, "ms"), (12, "s"), (10, "m"), (9, "h"), (8, "d")])
def test_longest_durations_are_accepted(digits: int, unit: str) -> None:
    assert QueueSpec(message_ttl="9" * digits + unit).message_ttl <= MAX_NUMBER


@pytest.mark.parametrize("number", [30, 30_000, 1.5, True])
def test_duration_without_unit_is_refused(number: object) -> None:
    assert "write a duration with its unit, as in 30s" in problem(visibilityTimeout=number)


@given(st.integers(0, 10**15 - 1))
@example(600_000_000_180_000)  # in minutes it has 11 digits
def test_formatted_duration_round_trips(ms: int) -> None:
    assert QueueSpec(message_ttl=format_duration(ms)).message_ttl == ms


@pytest.mark.parametrize(
    ("level", "replicas"), [("memory", 0), ("fsync", 0), ("replicated:1", 1), ("replicated:12", 12)]
)
def test_ack_levels(level: str, replicas: int) -> None:
    assert replicas_of(level) == replicas
    assert QueueSpec(ack_level=level).replicas() == replicas


@pytest.mark.parametrize(
    "level", ["disk", "FSYNC", "replicated", "replicated:0", "replicated:-1", "replicated:1 "]
)
def test_invalid_ack_level_is_refused(level: str) -> None:
    assert "an ack level is memory, fsync or replicated:<n>" in problem(ackLevel=level)


@pytest.mark.parametrize(
    "spec",
    [
        {"maxlength": 5},
        {"max_bytes_": 5},
        {"deadLetter": {"queue": "x"}},
        {"relay": {}},
    ],
)
def test_unknown_field_is_refused(spec: dict[str, Any]) -> None:
    assert "Extra inputs are not permitted" in problem(**spec)


@pytest.mark.parametrize("policy", ["DeleteIfEmpty", "Delete"])
def test_deletion_policy_without_kubernetes_is_refused(policy: str) -> None:
    """Check that deletion policies which need an operator are refused without Kubernetes."""
    assert "must be 'Retain', the only policy that this version keeps" in problem(deletionPolicy=policy)
    assert QueueSpec(deletion_policy=DeletionPolicy.RETAIN) == QueueSpec()
    kept = QueueSpec.model_validate_json(json.dumps({"deletionPolicy": policy}), context=STORED)
    assert kept.deletion_policy == policy  # what a store holds stays legible


@pytest.mark.parametrize("name", ["maxLength", "maxBytes", "maxDeliveries"])
@pytest.mark.parametrize("value", [-1, 1.5, "many", True, MAX_NUMBER + 1])
def test_bounds_are_whole_numbers(name: str, value: object) -> None:
    assert name in problem(**{name: value})


@pytest.mark.parametrize("domain", ["", "a:b", "a}b", "a b", "x" * 64, "\u00e4"])
def test_domain_cannot_end_its_hash_tag(domain: str) -> None:
    assert "domain" in problem(domain=domain)


def test_domain_of_the_catalogue_is_reserved() -> None:
    """Check that the domain `registry` is reserved, as the catalogue uses its keys (docs/kubernetes.md, "Queue")."""
    assert "the domain 'registry' is reserved for the store's catalogue" in problem(domain="registry")
    assert DomainKeys("registry").epoch == RegistryKeys().epoch
    assert QueueSpec(domain="registry.2").domain == "registry.2"
    kept = QueueSpec.model_validate_json('{"domain": "registry"}', context=STORED)
    assert kept.domain == "registry"  # what a store holds stays legible


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"metadata": {}},
        {"metadata": {"name": ""}},
        {"metadata": {"name": "\u00e4" * 128}},
        {"kind": "Topic", **NAME},
        {"apiVersion": "penstock.dev/v2", **NAME},
        {"status": {}, **NAME},
    ],
)
def test_invalid_documents_are_refused(document: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        QueueDocument.model_validate(document)


def test_length_of_names_is_counted_in_octets() -> None:
    """Check that names have 1 to 255 octets of any value (tmq.md 2.1)."""
    assert check_name("\u00e4" * 127) == "\u00e4" * 127
    assert check_name("\udcff" * 255) == "\udcff" * 255
    for bad in ("", "\u00e4" * 128, "x" * 256):
        with pytest.raises(ValueError, match="1 to 255 octets"):
            check_name(bad)


@pytest.mark.parametrize("name", ["a\nb", "a\n", "\t", "\x00", "\x7f"])
def test_control_characters_in_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no control characters"):
        check_name(name)
    assert "no control characters" in problem(queueName=name)


def test_visibility_timeout_of_zero_is_refused_and_read_from_the_store() -> None:
    assert "0s would return messages" in problem(visibilityTimeout="0s")
    assert QueueSpec.model_validate_json('{"visibilityTimeout": 0}', context=STORED).visibility_timeout == 0


def test_queue_name_overrides_the_name_in_metadata() -> None:
    document = QueueDocument.model_validate({**NAME, "spec": {"queueName": "Orders/EU", "maxLength": 5}})
    assert document.name == "Orders/EU"
    assert document.queue == QueueSpec(max_length=5)
    assert QueueDocument.model_validate(NAME).name == "orders"


def test_null_means_omitted() -> None:
    """Check that null means omitted, as in an empty `access:`, except for a name (docs/kubernetes.md, "Queue")."""
    for document in (
        {"spec": None, "metadata": {"name": "orders", "labels": None}},
        NAME | {"spec": {"access": None}},
    ):
        assert QueueDocument.model_validate(document).queue == QueueSpec()
    assert QueueSpec.model_validate_json('{"max_length": null, "ackLevel": null}') == QueueSpec()
    assert "Extra inputs are not permitted" in problem(maxLenght=None)


def test_further_metadata_is_ignored() -> None:
    metadata = {"name": "orders", "uid": "x", "labels": {"team": "a"}, "managedFields": []}
    assert QueueDocument.model_validate({"metadata": metadata}).metadata.labels == {"team": "a"}


@given(specs)
def test_written_document_round_trips(spec: QueueSpec) -> None:
    written = to_document("orders", spec)
    again = QueueDocument.model_validate(json.loads(json.dumps(written)))
    assert (again.name, again.queue) == ("orders", spec)


@given(specs)
def test_stored_document_round_trips(spec: QueueSpec) -> None:
    kept = spec.model_dump_json(by_alias=True, exclude_defaults=True)
    assert QueueSpec.model_validate_json(kept, context=STORED) == spec


def test_defaults_are_omitted_from_documents() -> None:
    assert to_document("orders", QueueSpec())["spec"] == {}
