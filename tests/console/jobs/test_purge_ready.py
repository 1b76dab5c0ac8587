"""Test purging ready messages (docs/console.md, Changes)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from services.console.jobs import orphaned_jobs
from services.console.jobs.job import run_of
from services.console.jobs.job_board import ORPHANED
from services.store.deadletters.queue_purge import QueuePurge
from services.store.pipeline.async_client import AsyncClient
from tests.console.access.test_identity import TOKENS
from tests.console.jobs.test_completion import job_where, write_as_silent
from tests.console.live_console import LiveConsole, Reply
from tests.live import until
from tests.proxy import Proxy
from tests.servers import Server

PURGE = "/queues/orders/messages/purge"
ANY = {"If-Match": "*"}


@pytest.fixture
async def proxy(server: Server) -> AsyncIterator[Proxy]:
    async with Proxy(server.port) as proxy:
        yield proxy


async def _filled(console: LiveConsole, number: int) -> dict[str, str]:
    """Create and fill the queue; return If-Match."""
    await console.fill(await console.declare("orders"), *(b"%d" % each for each in range(number)))
    return await console.etag("/queues/orders")


async def test_purge_deletes_ready_messages_and_is_audited(console: LiveConsole) -> None:
    etag = await _filled(console, 2500)
    job = await console.job(await console.ask("POST", PURGE, {}, headers=etag))
    assert (job["kind"], job["state"], job["matched"], job["moved"]) == ("empty", "done", 2500, 2500)
    assert (job["queue"], job["target"], job["missing"]) == ("orders", None, 0)
    document = await console.found("/queues/orders")
    assert (document["ready"], document["bytes"], document["counters"]["emptied"]) == (0, 0, 2500)
    assert (await console.get("/queues")).items[0]["ready"] == 0
    (begun,) = console.audited(what="message.purge")
    assert (begun["target"], begun["outcome"], begun["detail"]) == ("orders", "done", {"job": job["id"]})
    (ended,) = await until(lambda: console.audited(what="message.purge.ended"))
    assert (ended["outcome"], ended["detail"]["moved"]) == ("done", 2500)
    queue = await console.tools.catalogue.find("orders")
    run = QueuePurge(console.tools.get_domain("main"), queue, run_of(job["id"]))
    assert await run.removed() == 0, "the store keeps no count of a completed run"


async def test_messages_in_flight_stay(console: LiveConsole) -> None:
    await _filled(console, 5)
    queue = await console.tools.catalogue.find("orders")
    pipe = console.tools.open_domain(queue.domain).pipe
    await pipe.ready()
    taken = await AsyncClient(pipe).take(queue, 2)
    dry = (await console.ask("POST", PURGE, {"dryRun": True})).document
    assert (dry["matched"], dry["inFlight"]) == (3, 2)
    job = await console.job(await console.ask("POST", PURGE, {}, headers=ANY))
    assert job["moved"] == 3
    assert (await console.stats("orders"))["in_flight"] == sum(one.count for one in taken)


async def test_a_dry_run_changes_nothing(console: LiveConsole) -> None:
    await _filled(console, 5)
    dry = (await console.ask("POST", PURGE, {"dryRun": True})).document
    assert (dry["matched"], dry["inFlight"]) == (5, 0)
    assert (await console.stats("orders"))["ready"] == 5
    assert (await console.get("/jobs")).items == []


async def test_messages_added_after_the_dry_run_stay(console: LiveConsole) -> None:
    etag = await _filled(console, 2)
    document = (await console.ask("POST", PURGE, {"dryRun": True})).document
    queue = await console.tools.catalogue.find("orders")
    await console.fill(queue, *(b"later" for _ in range(50)))
    again = (await console.ask("POST", PURGE, {"dryRun": True, "until": document["until"]})).document
    assert again == document
    job = await console.job(await console.ask("POST", PURGE, {"until": document["until"]}, headers=etag))
    assert (job["state"], job["matched"], job["moved"]) == ("done", 2, 2)
    assert (await console.stats("orders"))["ready"] == 50
    assert (await console.job(await console.ask("POST", PURGE, {}, headers=etag)))["moved"] == 50


async def test_dry_run_of_a_deleted_queue_does_not_apply_to_its_successor(console: LiveConsole) -> None:
    await _filled(console, 2)
    document = (await console.ask("POST", PURGE, {"dryRun": True})).document
    await console.tools.catalogue.delete(await console.tools.catalogue.find("orders"))
    await _filled(console, 1)
    for headers, dry in ((ANY, False), ({}, True)):
        body = {"until": document["until"], "dryRun": dry}
        assert (await console.ask("POST", PURGE, body, headers=headers)).status == 412
    assert (await console.stats("orders"))["ready"] == 1


async def test_until_that_is_malformed(console: LiveConsole) -> None:
    await _filled(console, 1)
    for given in ["1", "q1 1-1", "q1 1-1 1\n", "q1 1-1 -1", 5, None]:
        assert (await console.ask("POST", PURGE, {"until": given}, headers=ANY)).status == 422


async def test_until_beyond_the_last_message(console: LiveConsole) -> None:
    await _filled(console, 2)
    qid = (await console.tools.catalogue.find("orders")).qid
    fields = {"until": f"{qid} {'9' * 20}-{'9' * 20} {'9' * 15}"}
    job = await console.job(await console.ask("POST", PURGE, fields, headers=ANY))
    assert (job["state"], job["matched"], job["moved"]) == ("done", 2, 2)


async def test_purge_requires_a_matching_etag(console: LiveConsole) -> None:
    old = await _filled(console, 1)
    await console.declare("orders", replace=True, maxLength=7)
    assert (await console.ask("POST", PURGE, {})).status == 428
    assert (await console.ask("POST", PURGE, {}, headers=old)).status == 412
    assert (await console.ask("POST", PURGE, {"all": True}, headers=ANY)).status == 422
    assert (await console.ask("POST", "/queues/others/messages/purge", {}, headers=ANY)).status == 404
    assert (await console.stats("orders"))["ready"] == 1


async def test_purge_requires_the_admin_role(server: Server) -> None:
    async with LiveConsole(server.url, tokens=TOKENS) as console:
        await console.fill(await console.declare("orders"), b"a")
        assert (await console.ask("POST", PURGE, {}, headers=ANY, token="do")).label == "forbidden"
        assert (await console.stats("orders"))["ready"] == 1
        assert (await console.ask("POST", PURGE, {}, headers=ANY, token="rule")).status == 202


async def _begun_unheard(console: LiveConsole, proxy: Proxy) -> Reply:
    """Start purging 2,500 messages, and lose the store's responses from then on."""
    await _filled(console, 2500)
    proxy.lose_replies_to = b"ps1_empty"
    reply = await console.ask("POST", PURGE, {}, headers=ANY)
    await until(lambda: proxy.lost >= 2)
    return reply


async def test_lost_responses_are_retried(proxy: Proxy) -> None:
    """Check that a purge continues after lost responses, and its count is exact."""
    async with LiveConsole(proxy.url) as console:
        reply = await _begun_unheard(console, proxy)
        proxy.lose_replies_to = b""
        job = await console.job(reply)
        assert (job["state"], job["moved"]) == ("done", 2500)
        assert (await console.stats("orders"))["emptied"] == 2500


async def test_expired_run_does_not_purge_new_messages(proxy: Proxy) -> None:
    """Check that an expired run, as after an hour or in a store that lost data, does not purge new messages."""
    async with LiveConsole(proxy.url) as console:
        reply = await _begun_unheard(console, proxy)
        queue = await console.tools.catalogue.find("orders")
        await console.fill(queue, b"later")
        await QueuePurge(console.tools.get_domain("main"), queue, run_of(reply.document["id"])).forget()
        proxy.lose_replies_to = b""
        assert (await console.job(reply))["state"] == "done"
        assert (await console.stats("orders"))["ready"] == 1


async def test_purge_of_a_killed_console_is_completed(
    console: LiveConsole, monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    monkeypatch.setattr(orphaned_jobs, "CHECK_S", 0.05)
    monkeypatch.setattr(orphaned_jobs, "CERTAIN_S", 0.3)
    await _filled(console, 3)
    job = await console.job(await console.ask("POST", PURGE, {}, headers=ANY))
    killed = {**job, "id": "0123456789abcdef", "state": "running", "endedAt": None, "moved": 0}
    queue = await console.tools.catalogue.find("orders")
    await console.fill(queue, b"a", b"b")
    run = QueuePurge(console.tools.get_domain("main"), queue, run_of(killed["id"]))
    assert (await run.step()).messages == 2
    await write_as_silent(console, killed)
    async with LiveConsole(server.url) as other:
        document = await until(lambda: job_where(other, killed, lambda document: document["moved"] == 2))
        assert (document["state"], document["error"]) == ("failed", ORPHANED)
        await other.inside.jobs.orphans.end(killed)
        assert await run.removed() == 2, "the run is kept, so that its console could continue the same job"
