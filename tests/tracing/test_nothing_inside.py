"""Test that no span has message contents (docs/tracing.md, "Guarantees")."""

from __future__ import annotations

import base64

from services.store import CommitPart, DeadLetters
from services.store.model import records
from tests.servers import Server
from tests.tracing.collector import Collector
from tests.tracing.stores import traced_store

BODY, NAME, VALUE = b"4929-1234-5678", "patient", "Erika Mustermann"
TOLD = {
    "dead q",
    "receive later",
    "receive q",
    "redrive later",
    "reject q",
    "release q",
    "send later",
    "send q",
    "settle later",
    "settle q",
}


async def test_spans_contain_no_bodies_and_attributes(server: Server, collector: Collector) -> None:
    """After every outcome, and in every encoding of the collector."""
    async with traced_store(server.url, collector.endpoint) as store:
        queue, later = await store.queue("q"), await store.queue("later")
        client = await store.async_client(queue)
        await store.put(queue, *[BODY] * 4, **{NAME: VALUE})
        await client.settle(await client.take(queue, 1))
        await client.release(await client.take(queue, 1), failed=True, error="not now")
        await client.reject(await client.take(queue, 1), "refused", "never")
        letters = DeadLetters(store.get_domain(queue.domain), queue)
        (letter,) = [letter async for letter in letters.matching()]
        assert (letter.body, letter.attributes[NAME]) == (BODY, VALUE)
        store.start_serving()
        await collector.has("dead q")
        assert (await letters.redrive([letter.id], later)).moved == 1
        record = records.encode(BODY, {NAME: VALUE})
        await client.commit(
            "once",
            [CommitPart(queue, await client.take(queue, 1), [], ""), CommitPart(later, [], [record], "test")],
        )
        await client.settle(await client.take(later, 10))
        await collector.has(*TOLD)
    raw = collector.raw()
    for secret in (BODY, NAME.encode(), VALUE.encode()):
        for shown in (secret, secret.hex().encode(), base64.b64encode(secret)[:-4]):
            assert shown not in raw
