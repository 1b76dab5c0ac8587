"""Test jobs that redrive and purge dead letters."""

from __future__ import annotations

import asyncio
from itertools import product
from typing import Any

import pytest

from services.console.contract.moments import moment
from services.console.jobs.jobs import MAX_RUNNING
from services.console.queries import selection
from services.store import QueueSpec
from services.store.deadletters.dead_letters import PAGE
from tests.console.live_console import LiveConsole
from tests.live import until
from tests.stores import NewServer

REDRIVE, PURGE = "/queues/orders/dead/redrive", "/queues/orders/dead/purge"
ANY = {"If-Match": "*"}


async def _buried(console: LiveConsole, number: int = 10, **spec: Any) -> list[str]:
    queue = await console.declare("orders", **spec)
    return await console.bury(queue, *(b"%d" % each for each in range(number)))


class TestRedrive:
    async def test_all(self, console: LiveConsole) -> None:
        await _buried(console, 450)
        job = await console.job(await console.ask("POST", REDRIVE, {"all": True}))
        assert (job["state"], job["matched"], job["moved"], job["missing"]) == ("done", 450, 450, 0)
        assert (job["kind"], job["queue"], job["target"], job["by"]) == (
            "redrive",
            "orders",
            "orders",
            "local",
        )
        assert job["endedAt"] >= job["startedAt"]
        stats = await console.stats("orders")
        assert (stats["ready"], stats["dead_letters"]) == (450, 0)
        assert (await console.get("/queues")).items[0]["ready"] == 450

    async def test_by_ids(self, console: LiveConsole) -> None:
        ids = await _buried(console)
        job = await console.job(await console.ask("POST", REDRIVE, {"ids": [ids[1], ids[5], "1-1"]}))
        assert (job["state"], job["matched"], job["moved"]) == ("done", 2, 2)
        assert [letter["id"] for letter in await console.letters("orders")] == [*ids[:1], *ids[2:5], *ids[6:]]

    async def test_by_a_filter(self, console: LiveConsole) -> None:
        await _buried(console, 20)
        job = await console.job(await console.ask("POST", REDRIVE, {"filter": {"body": "^1.$"}}))
        assert job["moved"] == 10
        job = await console.job(await console.ask("POST", REDRIVE, {"filter": {"reasons": ["held"]}}))
        assert (job["state"], job["matched"]) == ("done", 0)
        refused = await console.ask("POST", REDRIVE, {"filter": {"reasons": ["other"]}})
        assert (refused.status, refused.label) == (409, "reason_unknown")

    async def test_into_another_queue(self, console: LiveConsole) -> None:
        await _buried(console)
        await console.declare("others")
        job = await console.job(await console.ask("POST", REDRIVE, {"all": True, "target": "others"}))
        assert job["target"] == "others"
        assert (await console.stats("others"))["ready"] == 10
        assert {row["name"]: row["ready"] for row in (await console.get("/queues")).items} == {
            "orders": 0,
            "others": 10,
        }

    async def test_invalid_targets(self, console: LiveConsole) -> None:
        await _buried(console)
        await console.declare("elsewhere", domain="other")
        await console.declare("resting", paused=True)
        queue = await console.declare("small", maxLength=1)
        ring = await console.declare("circle", maxLength=1, overflow="dead_letter_oldest")
        await console.fill(queue, b"one")
        await console.fill(ring, b"one")
        taken = await console.declare("taken")
        await console.tools.open_domain(taken.domain).claims.reserve(taken, "holder", 60_000)
        refused = {
            "missing": (404, "queue_unknown"),
            "elsewhere": (409, "domain_mismatch"),
            "resting": (409, "queue_paused"),
            "small": (429, "queue_full"),
            "circle": (429, "queue_full"),
            "taken": (409, "queue_reserved"),
        }
        for dry, (target, expected) in product((False, True), refused.items()):
            reply = await console.ask("POST", REDRIVE, {"all": True, "target": target, "dryRun": dry})
            assert (reply.status, reply.label) == expected
            assert target in reply.document["detail"]
        assert (await console.get("/jobs")).items == []
        assert len(await console.letters("orders")) == 10

    async def test_queue_itself_is_validated_as_target(self, console: LiveConsole) -> None:
        await _buried(console)
        await console.tools.catalogue.declare(
            "orders", QueueSpec.model_validate({"ackLevel": "memory", "paused": True}), "test", replace=True
        )
        reply = await console.ask("POST", REDRIVE, {"all": True, "dryRun": True})
        assert (reply.status, reply.label) == (409, "queue_paused")

    async def test_target_that_becomes_full(self, console: LiveConsole) -> None:
        await _buried(console)
        await console.declare("small", maxLength=3)
        job = await console.job(await console.ask("POST", REDRIVE, {"all": True, "target": "small"}))
        assert (job["state"], job["moved"]) == ("failed", 3)
        assert "full" in job["error"]
        assert len(await console.letters("orders")) == 7

    async def test_dry_run(self, console: LiveConsole) -> None:
        await _buried(console)
        reply = await console.ask("POST", REDRIVE, {"all": True, "dryRun": True})
        assert reply.status == 200
        counted = {each: value for each, value in reply.document.items() if each != "until"}
        assert counted == {"matched": 10, "looked": 10, "reasons": {"poison": 10}, "complete": True}
        assert len(await console.letters("orders")) == 10

    async def test_rate_limit(self, console: LiveConsole) -> None:
        await _buried(console, 30)
        loop = asyncio.get_running_loop()
        began = loop.time()
        job = await console.job(await console.ask("POST", REDRIVE, {"all": True, "rate": 40}))
        assert job["moved"] == 30
        assert loop.time() - began >= 0.5  # all but the first ten wait

    async def test_total_is_known_without_reading_each(
        self, console: LiveConsole, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await _buried(console, 450)
        monkeypatch.setattr(selection, "REASONS_S", 0.0)
        monkeypatch.setattr(selection, "COUNT_S", 0.0)
        dry = (await console.ask("POST", REDRIVE, {"all": True, "dryRun": True})).document
        until_when = dry.pop("until")
        assert dry == {"matched": 450, "looked": PAGE, "reasons": {"poison": PAGE}, "complete": True}
        assert until_when < moment(await console.tools.now_ms())
        some = {"filter": {"origin": "test"}, "dryRun": True}
        dry = (await console.ask("POST", REDRIVE, some)).document
        assert (dry["complete"], dry["matched"] < 450, dry["looked"] == dry["matched"]) == (False, True, True)

    async def test_dead_letters_during_the_job_stay(self, console: LiveConsole) -> None:
        await _buried(console, 20)
        reply = await console.ask("POST", REDRIVE, {"all": True, "rate": 40})
        await until(lambda: _moved(console, reply, 1))
        queue = await console.tools.catalogue.find("orders")
        await console.bury(queue, *(b"new%d" % number for number in range(5)))
        job = await console.job(reply)
        assert job["moved"] == 20
        assert len(await console.letters("orders")) == 5

    async def test_selection_is_required(self, console: LiveConsole) -> None:
        await _buried(console, 1)
        for body in [
            {},
            {"filter": {}},
            {"all": False},
            {"all": True, "ids": ["1-1"]},
            {"ids": []},
            {"ids": ["x"]},
            {"all": True, "rate": 0},
            {"filter": {"olderThan": 5}},
            {"filter": {"nonsense": 5}},
            {"all": True, "target": ""},
        ]:
            assert (await console.ask("POST", REDRIVE, body)).status == 422
        assert len(await console.letters("orders")) == 1


async def _moved(console: LiveConsole, reply: Any, least: int) -> bool:
    path = reply.headers["Location"].removeprefix("/api/v1")
    return bool((await console.found(path))["moved"] >= least)


class TestPurge:
    async def test_all(self, console: LiveConsole) -> None:
        await _buried(console, 450)
        job = await console.job(
            await console.ask("POST", PURGE, {"all": True}, headers=await console.etag("/queues/orders"))
        )
        assert (job["state"], job["moved"], job["target"]) == ("done", 450, None)
        assert (await console.stats("orders"))["purged"] == 450

    async def test_purge_requires_a_matching_etag(self, console: LiveConsole) -> None:
        await _buried(console, 1)
        assert (await console.ask("POST", PURGE, {"all": True})).status == 428
        assert (await console.ask("POST", PURGE, {"all": True}, headers={"If-Match": '"a"'})).status == 412
        assert (await console.ask("POST", PURGE, {"all": True, "dryRun": True})).document["matched"] == 1
        assert len(await console.letters("orders")) == 1


class TestJobs:
    async def test_cancelled(self, console: LiveConsole) -> None:
        await _buried(console, 40)
        reply = await console.ask("POST", REDRIVE, {"all": True, "rate": 20})
        await until(lambda: _moved(console, reply, 5))
        path = reply.headers["Location"].removeprefix("/api/v1")
        job = (await console.ask("DELETE", path)).document
        assert job["state"] == "cancelled"
        stats = await console.stats("orders")
        assert (stats["ready"], stats["dead_letters"]) == (job["moved"], 40 - job["moved"])
        assert (await console.ask("DELETE", path)).document == job
        assert await console.found(path) == job

    async def test_newest_are_listed_first(self, console: LiveConsole) -> None:
        await _buried(console)
        ids = []
        for _ in range(3):
            ids.insert(0, (await console.job(await console.ask("POST", REDRIVE, {"all": True})))["id"])
        assert [job["id"] for job in (await console.get("/jobs")).items] == ids
        page = await console.found("/jobs?limit=2")
        rest = await console.found(f"/jobs?cursor={page['next']}")
        assert [job["id"] for job in page["items"] + rest["items"]] == ids
        assert rest["next"] is None

    async def test_unknown_job(self, console: LiveConsole) -> None:
        assert (await console.get("/jobs/x")).label == "job_unknown"
        assert (await console.ask("DELETE", "/jobs/x")).label == "job_unknown"

    async def test_too_many(self, console: LiveConsole) -> None:
        await _buried(console, 400)
        for _ in range(MAX_RUNNING):
            assert (await console.ask("POST", REDRIVE, {"all": True, "rate": 1})).status == 202
        assert (await console.ask("POST", REDRIVE, {"all": True})).label == "too_many_jobs"

    async def test_limit_of_concurrent_requests(self, console: LiveConsole) -> None:
        """Check that jobs that are still counting count as running."""
        await _buried(console, 400)
        slow = {"all": True, "rate": 1}
        asked = (console.ask("POST", REDRIVE, slow) for _ in range(2 * MAX_RUNNING))
        replies = await asyncio.gather(*asked)
        assert sorted(reply.status for reply in replies) == [202] * MAX_RUNNING + [429] * MAX_RUNNING

    async def test_queue_is_deleted_during_a_job(self, console: LiveConsole) -> None:
        await _buried(console, 20)
        reply = await console.ask("POST", REDRIVE, {"all": True, "rate": 8})
        await until(lambda: _moved(console, reply, 1))
        await console.tools.catalogue.delete(await console.tools.catalogue.find("orders"))
        job = await console.job(reply)
        assert job["state"] == "failed"

    async def test_start_and_end_are_in_the_audit_log(self, console: LiveConsole) -> None:
        await _buried(console)
        job = await console.job(await console.ask("POST", REDRIVE, {"all": True}))
        await until(lambda: console.audited(what="dead.redrive.ended"))
        (began,) = console.audited(what="dead.redrive")
        (ended,) = console.audited(what="dead.redrive.ended")
        assert (began["target"], began["outcome"], began["detail"]["job"]) == ("orders", "done", job["id"])
        assert ended["detail"] == {"job": job["id"], "moved": 10, "missing": 0, "matched": 10}


async def test_job_waits_for_the_store(new_server: NewServer) -> None:
    server = await new_server()
    async with LiveConsole(server.url) as console:
        await _buried(console, 60)
        reply = await console.ask("POST", REDRIVE, {"all": True, "rate": 60})
        await until(lambda: _moved(console, reply, 15))
        path = reply.headers["Location"].removeprefix("/api/v1")
        server.kill9()

        async def waits() -> bool:
            return bool((await console.found(path))["error"])

        await until(waits)
        assert (await console.found(path))["state"] == "running"
        server.restart()
        job = await console.job(reply)
        assert (job["state"], job["moved"], job["error"]) == ("done", 60, None)
        stats = await console.stats("orders")
        assert (stats["ready"], stats["dead_letters"]) == (60, 0)


async def test_process_stop_cancels_jobs(console: LiveConsole) -> None:
    await _buried(console, 40)
    reply = await console.ask("POST", REDRIVE, {"all": True, "rate": 8})
    await until(lambda: _moved(console, reply, 1))
    await console.stop_taking()
    (line,) = console.audited(what="dead.redrive.ended")
    assert line["outcome"] == "cancelled"
    stats = await console.stats("orders")
    assert (stats["ready"], stats["dead_letters"]) == (line["detail"]["moved"], 40 - line["detail"]["moved"])
