"""Test that a redrive or purge is limited to what a dry run counted."""

from __future__ import annotations

from typing import Any

import pytest

from services.store import Queue
from tests.console.live_console import LiveConsole
from tests.live import until

DEAD = "/queues/orders/dead"


@pytest.fixture
async def queue(console: LiveConsole) -> Queue:
    queue = await console.declare("orders")
    await console.bury(queue, b"1", b"2", b"3")
    await _tick(console)
    return queue


async def _tick(console: LiveConsole) -> None:
    """Wait until the millisecond of the last death is over by the store's clock."""
    before = await console.tools.now_ms()

    async def is_over() -> bool:
        return await console.tools.now_ms() > before + 1

    await until(is_over)


async def _change(console: LiveConsole, kind: str, body: dict[str, Any]) -> dict[str, Any]:
    headers = await console.etag("/queues/orders")
    return await console.job(await console.ask("POST", f"{DEAD}/{kind}", body, headers=headers))


@pytest.mark.parametrize("kind", ["purge", "redrive"])
@pytest.mark.parametrize("chosen", [{"all": True}, {"filter": {"body": "."}}])
async def test_dead_letters_after_the_dry_run_stay(
    console: LiveConsole, queue: Queue, kind: str, chosen: dict[str, Any]
) -> None:
    document = (await console.ask("POST", f"{DEAD}/{kind}", {**chosen, "dryRun": True})).document
    assert document["matched"] == 3
    late = (await console.bury(queue, *(b"%d" % number for number in range(50))))[3:]
    again = (
        await console.ask("POST", f"{DEAD}/{kind}", {**chosen, "until": document["until"], "dryRun": True})
    ).document
    assert again == document
    job = await _change(console, kind, {**chosen, "until": document["until"]})
    assert (job["state"], job["matched"], job["moved"]) == ("done", 3, 3)
    assert [letter["id"] for letter in await console.letters("orders")] == late


async def test_dead_letters_too_young_at_the_dry_run_stay(console: LiveConsole, queue: Queue) -> None:
    """Check that dead letters that were too young for the filter at the dry run are not purged."""
    chosen = {"filter": {"olderThan": "1s"}}
    document = (await console.ask("POST", f"{DEAD}/purge", {**chosen, "dryRun": True})).document

    async def is_old() -> bool:
        return bool(
            (await console.ask("POST", f"{DEAD}/purge", {**chosen, "dryRun": True})).document["matched"] == 3
        )

    await until(is_old)
    job = await _change(console, "purge", {**chosen, "until": document["until"]})
    assert job["moved"] == document["matched"] == 0
    assert (await _change(console, "purge", chosen))["moved"] == 3


async def test_until_in_the_future_has_no_effect(console: LiveConsole, queue: Queue) -> None:
    reply = await console.ask(
        "POST", f"{DEAD}/purge", {"all": True, "until": "9999-12-31T23:59:59-23:59", "dryRun": True}
    )
    assert reply.document["matched"] == 3
    job = await _change(console, "purge", {"all": True, "until": "9999-12-31T23:59:59-23:59"})
    assert job["moved"] == 3


@pytest.mark.parametrize("apart_ms", [-3_600_000, 3_600_000])
async def test_ages_use_the_clock_of_the_queues_shard(
    console: LiveConsole, queue: Queue, monkeypatch: pytest.MonkeyPatch, apart_ms: int
) -> None:
    """Check that ages use the clock of the queue's shard, which is simulated, as a Cluster's shards have their own."""
    store = console.inside.store
    now_ms = store.now_ms

    async def elsewhere_ms() -> int:
        return await now_ms() + apart_ms

    monkeypatch.setattr(store, "now_ms", elsewhere_ms)
    chosen = {"filter": {"olderThan": "30m"}}
    assert await console.letters("orders", "&olderThan=30m") == []
    assert (await _change(console, "purge", chosen))["moved"] == 0
    document = (await console.ask("POST", f"{DEAD}/purge", {"all": True, "dryRun": True})).document
    job = await _change(console, "purge", {"all": True, "until": document["until"]})
    assert (job["state"], job["matched"], job["moved"]) == ("done", 3, 3)


async def test_until_is_in_the_audit_log(console: LiveConsole, queue: Queue) -> None:
    document = (await console.ask("POST", f"{DEAD}/purge", {"all": True, "dryRun": True})).document
    await _change(console, "purge", {"all": True, "until": document["until"]})
    details = [
        line["detail"] for line in (await console.get("/audit")).items if line["action"] == "dead.purge"
    ]
    assert any(document["until"] in detail for detail in details)


async def test_invalid_until_is_rejected(console: LiveConsole, queue: Queue) -> None:
    for body in [
        {"until": "2026-11-25T15:00:00Z"},
        {"all": True, "until": "2026-11-25T15:00:00"},
        {"all": True, "until": "yesterday"},
        {"all": True, "until": 5},
    ]:
        assert (await console.ask("POST", f"{DEAD}/redrive", body)).status == 422
