"""Test that redriven messages keep their trace (docs/tracing.md)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.store import DeadLetters
from tests.operator.conftest import NewOperator
from tests.operator.keeper import Keeper
from tests.operator.resource_documents import Seen, queue, redrive
from tests.servers import Server, eventually
from tests.tracing.collector import Collector
from tests.tracing.stores import traced_store


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Collector]:
    started = Collector(tmp_path / "collector").start()
    yield started
    started.stop()


async def dies(store: Server, collector: Collector) -> str:
    """Make a dead letter of a traced message, and return its id."""
    async with traced_store(store.url, collector.endpoint) as traced:
        found = await traced.catalogue.find("orders")
        await traced.put(found, b"a pump")
        client = await traced.async_client(found)
        await client.reject(await client.take(found, 1), "refused")
        letters = DeadLetters(traced.get_domain(found.domain), found)
        (letter,) = [letter.id async for letter in letters.matching()]
        return letter


def test_redriven_message_stays_in_its_trace(
    new_operator: NewOperator,
    seen: Seen,
    keeper: Keeper,
    store: Server,
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PENSTOCK_TRACING__ENDPOINT", collector.endpoint)
    monkeypatch.setenv("PENSTOCK_TRACING__INTERVAL_S", "0.02")
    new_operator().ready()
    seen.declared(queue("orders"))
    letter = asyncio.run(dies(store, collector))
    seen.apply(redrive("again", "orders"))
    seen.becomes("redrive", "again", "True", "Complete")
    (redriven,) = eventually(lambda: collector.of_name("redrive orders"))
    (sent,) = collector.of_name("send orders")
    assert (redriven.trace_id, redriven.parent_id) == (sent.trace_id, sent.span_id)
    assert (redriven.service, redriven.attributes["penstock.letter"]) == ("penstock-operator", letter)
    assert keeper.take("orders") == [b"a pump"]
