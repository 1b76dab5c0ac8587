"""Queue documents with bindings: validation, and limits of older versions (pubsub.md 2, 5.1, 5.2)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from services.store import Queue, QueueDocument, QueueSpec
from services.store.model.duration import STORED
from services.store.model.spec import to_document
from tests.servers import Client
from tests.store.desk import encode
from tests.store.lane import Lane, begin
from tests.store.pipeline.test_replays import Answers

letters = st.characters(min_codepoint=33, exclude_characters="*", exclude_categories=["Cs"])
names = st.text(letters, min_size=1, max_size=20)
patterns = st.tuples(names, st.sampled_from(["", "*"])).map("".join)


def problem(**text: Any) -> str:
    document = {"metadata": {"name": "orders"}, "spec": {"bindings": {"text": text}}}
    with pytest.raises(ValidationError) as caught:
        QueueDocument.model_validate(document)
    return str(caught.value)


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "*",
        "a b",
        "a*b",
        "a**",
        "**",
        "*a",
        "a\n",
        "a\0",
        "\x1f",
        " a",
        "a*\n",
        5,
        None,
        "\ud800",
        "a\udfff*",
    ],
)
def test_invalid_pattern_is_refused(pattern: object) -> None:
    assert "subscribe" in problem(subscribe=["a", pattern])


@pytest.mark.parametrize("tag", ["*", "a*", "a b", "a\n", "a\0", " ", "x" * 256, 5, ["a"], "\ud800"])
def test_invalid_tag_is_refused(tag: object) -> None:
    assert "publish" in problem(publish=tag)


def test_patterns_and_tags_have_bounds() -> None:
    assert "at most 100" in problem(subscribe=[f"t{n}" for n in range(101)])
    assert "Extra inputs" in problem(topic="a")
    assert "subscribe" in problem(subscribe="abc")


@pytest.mark.parametrize("text", [{"publish": "a"}, {"subscribe": ["a"]}])
def test_bindings_outside_the_log_domain_are_refused(text: dict[str, Any]) -> None:
    """Check that bindings are refused outside the log's domain, as they cannot cross shards (pubsub.md 5.1)."""
    with pytest.raises(ValidationError, match=r"bindings\.text needs domain 'main'"):
        QueueSpec(domain="other", bindings={"text": text})
    assert QueueSpec(domain="other", bindings={"text": {}}).bindings.text.publish == ""


@given(st.lists(patterns, max_size=4), st.one_of(st.just(""), names))
def test_document_with_bindings_round_trips(subscribe: list[str], publish: str) -> None:
    spec = QueueSpec(bindings={"text": {"subscribe": subscribe, "publish": publish}})
    assert QueueDocument.model_validate(to_document("orders", spec)).queue == spec
    kept = spec.model_dump_json(by_alias=True, exclude_defaults=True)
    assert QueueSpec.model_validate_json(kept, context=STORED) == spec


def limited(client: Client, limits: str, count: int) -> tuple[int, int]:
    """Publish to a queue with these limits; return the refusals and the number of lines in the log."""
    queue = Queue("orders", "q1", "main", "test", QueueSpec(ack_level="fsync"))
    begin(client, queue)
    client.call("HSET", queue.keys[1], "limits", limits)
    lane = Lane(client, "one")
    answers = Answers()
    lane.messages.publish(lane.source, queue, encode(*[b"x"] * count), "t", answers)
    lane.send()
    return len(answers[0]), sum(
        int(fields[1]) for _, fields in client.call("XRANGE", lane.keys.log[0], "-", "+")
    )


def test_limits_of_older_versions_without_tags_are_read(client: Client) -> None:
    """Check that limits of older versions, with eight words, are read."""
    assert limited(client, "5 0 reject 0 20 0 100 fsync", 7) == (2, 0)


@pytest.mark.parametrize("tag", ["t", "zażółć", "\u00a0\u2028", "100", "fsync", "%d", "x" * 255])
def test_tags_with_any_characters_are_read(client: Client, tag: str) -> None:
    spec = QueueSpec(max_length=5, ack_level="memory", bindings={"text": {"publish": tag}})
    limits = dict(zip(spec.fields()[::2], spec.fields()[1::2], strict=True))["limits"]
    assert limited(client, str(limits), 7) == (2, 5)
    entries = client.call("XRANGE", "ps:{main}:log:s", "-", "+")
    assert entries[0][1][11].startswith(f"SEND {tag} x\n".encode())


@pytest.mark.parametrize("bindings", [{}, {"text": {"subscribe": ["a"]}}])
def test_queue_without_tag_publishes_nothing(client: Client, bindings: dict[str, Any]) -> None:
    document = QueueSpec(ack_level="fsync", bindings=bindings)
    limits = dict(zip(document.fields()[::2], document.fields()[1::2], strict=True))["limits"]
    assert limited(client, str(limits), 3) == (0, 0)
