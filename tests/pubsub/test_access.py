"""Queues of the text service that not everybody may use (docs/operations.md, Who may use a queue; pubsub.md 5)."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from services.store import Client, QueueSpec, Source
from services.store.model import records
from services.store.model.errors import AccessDenied
from tests.live import until
from tests.pubsub.live import LiveEdge
from tests.pubsub.test_bridges import bodies, subscribing

TEXT_ALONE = {"edges": ["pubsub"]}


async def test_a_bridge_of_a_queue_that_lets_the_text_service_alone(edge: LiveEdge) -> None:
    """Copies go in, and what is put in appears; clients of other edges are kept out."""
    queue = await edge.declare("orders", **subscribing("order.*"), access=TEXT_ALONE)
    shown = await edge.declare("shown", bindings={"text": {"publish": "seen"}}, access=TEXT_ALONE)
    client = await edge.client()
    await client.subscribe(b"1", b"seen")
    await client.publish(b"order.new", b"a")
    assert await bodies(edge, queue) == [(b"a", "order.new")]
    pipe = edge.tools.open_domain().pipe
    told: list[Any] = []
    for each, source in ((queue, "tmq"), (shown, "tmq"), (shown, "pubsub")):
        pipe.messages.publish(Source(Client(source)), each, [records.encode(b"b")], "test", told.append)
    await until(lambda: len(told) == 3)
    denied = [isinstance(one, AccessDenied) for one in told]
    assert (denied.count(True), [one for one in told if one == []]) == (2, [[]])
    assert await client.line() == b"MESSAGE 1 b\n"


@pytest.mark.parametrize("binding", [{"subscribe": ["a"]}, {"publish": "a"}])
@pytest.mark.parametrize("access", [{"edges": ["tmq"]}, {"peers": ["10.0.0.7"]}, {"certificates": ["shop"]}])
def test_what_no_bridge_could_keep_is_no_document(binding: dict[str, Any], access: dict[str, Any]) -> None:
    """A line does not say who sent it, and nobody would be told that a copy was refused."""
    with pytest.raises(ValidationError, match=r"bindings\.text"):
        QueueSpec.model_validate({"bindings": {"text": binding}, "access": access})
