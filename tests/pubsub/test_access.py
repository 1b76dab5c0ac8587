"""Access rules of queues with text bindings (docs/operations.md, Who may use a queue; pubsub.md 5)."""

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


async def test_queue_that_admits_only_the_text_service_is_bridged(edge: LiveEdge) -> None:
    """Check that a queue that admits only the text service is bridged both ways, and closed to other clients."""
    queue = await edge.declare("orders", **subscribing("order.*"), access=TEXT_ALONE)
    shown = await edge.declare("shown", bindings={"text": {"publish": "seen"}}, access=TEXT_ALONE)
    client = await edge.client()
    await client.subscribe(b"1", b"seen")
    await client.publish(b"order.new", b"a")
    assert await bodies(edge, queue) == [(b"a", "order.new")]
    pipe = edge.tools.open_domain().pipe
    outcomes: list[Any] = []
    for each, source in ((queue, "tmq"), (shown, "tmq"), (shown, "pubsub")):
        pipe.messages.publish(Source(Client(source)), each, [records.encode(b"b")], "test", outcomes.append)
    await until(lambda: len(outcomes) == 3)
    denied = [isinstance(one, AccessDenied) for one in outcomes]
    assert (denied.count(True), [one for one in outcomes if one == []]) == (2, [[]])
    assert await client.line() == b"MESSAGE 1 b\n"


@pytest.mark.parametrize("binding", [{"subscribe": ["a"]}, {"publish": "a"}])
@pytest.mark.parametrize("access", [{"edges": ["tmq"]}, {"peers": ["10.0.0.7"]}, {"certificates": ["shop"]}])
def test_document_that_a_bridge_cannot_enforce_is_rejected(
    binding: dict[str, Any], access: dict[str, Any]
) -> None:
    """Check that a document that a bridge cannot enforce is rejected.

    A line does not name its sender, and a refused copy could not be reported.
    """
    with pytest.raises(ValidationError, match=r"bindings\.text"):
        QueueSpec.model_validate({"bindings": {"text": binding}, "access": access})
