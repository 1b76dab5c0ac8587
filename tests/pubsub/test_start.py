"""Several servers act as one, even with an empty list of neighbours (pubsub.md 4.1)."""

from __future__ import annotations

from tests.pubsub.conftest import Start
from tests.pubsub.stores import NewServer, linked, store


async def test_subscription_at_any_server_receives_messages_sent_to_any(
    new_server: NewServer, start: Start
) -> None:
    """Check that a subscription at any server receives messages sent to any, on one store and on several.

    Lists may name any servers, also those with an empty list.
    """
    first_store = await store(new_server)
    first = await start(first_store, neighbours=[])
    beside = await start(first_store, neighbours=[])
    far = await start(await store(new_server), neighbours=[first.link_address])
    await linked(far)
    await linked(first)
    edges = [first, beside, far]
    subscribers = [await edge.client() for edge in edges]
    for client in subscribers:
        await client.subscribe(b"1", b"t*")
    for number, edge in enumerate(edges):
        await (await edge.client()).publish(b"t%d" % number, b"from %d" % number)
        for client in subscribers:
            assert await client.line() == b"MESSAGE 1 from %d\n" % number
