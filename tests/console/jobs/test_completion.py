"""Test the completion of jobs during outages of the store, and after their console was killed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from services.console.access.authorization import Caller
from services.console.jobs import completion, orphaned_jobs
from services.console.jobs import jobs as jobs_
from services.console.jobs.job import Job, Kind, State, run_of
from services.console.jobs.job_board import ORPHANED, SILENT_MS, SharedJobs
from services.store import DeadLetters, Filter
from services.store.catalogue.job_board import JobBoard
from services.store.model.keys import RegistryKeys
from tests.console.live_console import LiveConsole, Reply
from tests.live import until
from tests.servers import Server
from tests.stores import NewServer

REDRIVE = "/queues/orders/dead/redrive"
ENDED = "dead.redrive.ended"
SLOW = {"all": True, "rate": 8}


@pytest.fixture
async def other(server: Server) -> AsyncIterator[LiveConsole]:
    async with LiveConsole(server.url) as other:
        yield other


async def _begun(console: LiveConsole, number: int = 40) -> dict[str, Any]:
    """Start a slow redrive, and wait until it has moved something."""
    queue = await console.declare("orders")
    await console.bury(queue, *(b"%d" % each for each in range(number)))
    job: dict[str, Any] = (await console.ask("POST", REDRIVE, SLOW)).document
    await until(lambda: job_where(console, job, lambda item: item["moved"] > 0))
    return job


async def job_where(console: LiveConsole, job: dict[str, Any], fits: Any) -> Any:
    reply: Reply = await console.get(f"/jobs/{job['id']}")
    return reply.document if reply.status == 200 and fits(reply.document) else None


async def _counted(console: LiveConsole) -> list[str]:
    """Return the runs that the store counts."""
    queue = await console.tools.catalogue.find("orders")
    fields = await console.tools.registry.link.call("HKEYS", queue.keys[1])
    return [field.decode() for field in fields if field.startswith(b"redrive:")]


def _tasks() -> list[str]:
    return [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("console job")]


async def write_as_silent(console: LiveConsole, fields: dict[str, Any]) -> None:
    """Write a job whose last heartbeat was long ago."""
    link = console.tools.registry.link
    text = f"{await link.now_ms() - SILENT_MS} {json.dumps(fields)}"
    await link.call("HSET", RegistryKeys().jobs, fields["id"], text)


async def test_result_is_published_when_the_store_is_back(new_server: NewServer) -> None:
    server = await new_server()
    async with LiveConsole(server.url) as console, LiveConsole(server.url) as other:
        job = await _begun(console)
        server.kill9()
        ended = (await console.ask("DELETE", f"/jobs/{job['id']}")).document
        assert ended["state"] == "cancelled"
        assert ended["endedAt"] > ended["startedAt"]
        server.restart()
        document = await until(lambda: job_where(other, job, lambda document: document["state"] != "running"))
        assert document["state"] == "cancelled"
        assert document == await console.found(f"/jobs/{job['id']}")
        await until(lambda: _none_left(console))
        stats = await console.stats("orders")
        assert (stats["ready"], stats["dead_letters"]) == (document["moved"], 40 - document["moved"])
        (line,) = [line for line in (await console.get("/audit")).items if line["action"] == ENDED]
        assert (line["target"], line["outcome"], line["who"]) == ("orders", "cancelled", "local")
        assert json.loads(line["detail"]) == {
            "job": job["id"],
            "moved": document["moved"],
            "missing": 0,
            "matched": 40,
        }


async def _none_left(console: LiveConsole) -> bool:
    return _tasks() == [] and await _counted(console) == []


async def test_process_stop_ends_publishing_of_results(
    new_server: NewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_, "CLOSE_S", 0.3)
    server = await new_server()
    async with LiveConsole(server.url) as console:
        job = await _begun(console)
        server.kill9()
        assert (await console.ask("DELETE", f"/jobs/{job['id']}")).document["state"] == "cancelled"
        await console.stop_taking()
        assert _tasks() == []
        assert len(console.log.events("job_unsaid")) == 1
        (line,) = console.audited(what=ENDED)  # the line is at least in the log
        assert (line["outcome"], line["detail"]["job"]) == ("cancelled", job["id"])
        server.restart()


async def test_console_that_stops_right_after_a_job_leaves_no_tasks(
    new_server: NewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a console that stops after a job leaves no task that would open a connection to the store."""
    monkeypatch.setattr(completion, "COMPLETION_S", 0.5)
    server = await new_server()
    async with LiveConsole(server.url) as console:
        job = await _begun(console)
        jobs = console.inside.jobs
        server.stop()
        cancelling = asyncio.create_task(console.ask("DELETE", f"/jobs/{job['id']}"))
        await until(lambda: not jobs.running())  # it has ended, and is about to report it
        asyncio.get_running_loop().call_later(0.1, server.cont)
        await jobs.close()
        assert _tasks() == []
        assert (await cancelling).document["state"] == "cancelled"


async def test_late_progress_does_not_overwrite_the_result(console: LiveConsole) -> None:
    queue = await console.declare("orders")
    job = Job(Kind.PURGE, queue, queue, Caller("local", None, "", ""), Filter(), 0, 1)
    before = job.document()

    class Slow(JobBoard):
        """A board on which an earlier write arrives after the first one."""

        async def put(self, identifier: str, document: dict[str, Any]) -> None:
            await super().put(identifier, document)
            if before:
                await super().put(identifier, dict(before))
                before.clear()

    job.end(State.DONE)
    await SharedJobs(Slow(console.tools.registry)).end(job)
    assert (await console.found(f"/jobs/{job.id}"))["state"] == "done"


async def test_job_that_seemed_orphaned_is_cancelled(console: LiveConsole, other: LiveConsole) -> None:
    """Check that a job can be cancelled that seemed orphaned, as after half a minute without a store."""
    job = await _begun(console)
    await write_as_silent(other, await console.found(f"/jobs/{job['id']}"))
    ended = (await other.ask("DELETE", f"/jobs/{job['id']}")).document
    assert ended["state"] == "cancelled"
    assert ended == await console.found(f"/jobs/{job['id']}")


async def test_request_to_cancel_an_orphaned_job_is_kept(
    console: LiveConsole, other: LiveConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_, "REVIVE_S", 0.0)
    job = await _begun(console)
    await write_as_silent(other, await console.found(f"/jobs/{job['id']}"))
    await other.ask("DELETE", f"/jobs/{job['id']}")
    await until(lambda: job_where(console, job, lambda item: item["state"] == "cancelled"))


async def test_orphaned_job_is_completed_and_its_count_deleted(
    console: LiveConsole, monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    queue = await console.declare("orders")
    ids = await console.bury(queue, *(b"%d" % each for each in range(9)))
    monkeypatch.setattr(orphaned_jobs, "CHECK_S", 0.05)
    monkeypatch.setattr(orphaned_jobs, "CERTAIN_S", 0.3)
    job = await console.job(await console.ask("POST", REDRIVE, {"ids": ids[:2]}))
    killed = {**job, "id": "0123456789abcdef", "state": "running", "moved": 3, "endedAt": None}
    letters = DeadLetters(console.tools.get_domain(queue.domain), queue)
    assert (await letters.redrive(ids[2:7], run=run_of(killed["id"]))).moved == 5
    await write_as_silent(console, killed)
    async with LiveConsole(server.url) as other:
        await until(lambda: job_where(other, killed, lambda document: document["moved"] == 5))
        document = await other.found(f"/jobs/{killed['id']}")
        assert (document["state"], document["error"]) == ("failed", ORPHANED)
        await until(lambda: _none_left(other))


async def test_orphaned_job_that_fails_does_not_block_others(
    console: LiveConsole, monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    """Check that other orphaned jobs complete if the document of the first job's queue has no readable ID."""
    queue = await console.declare("orders")
    ids = await console.bury(queue, b"a", b"b")
    monkeypatch.setattr(orphaned_jobs, "CHECK_S", 0.05)
    monkeypatch.setattr(orphaned_jobs, "CERTAIN_S", 0.3)
    job = await console.job(await console.ask("POST", REDRIVE, {"ids": ids[:1]}))
    killed = {**job, "state": "running", "moved": 0, "endedAt": None}
    first = {**killed, "id": "0" * 16, "queue": "broken", "target": "broken"}
    second = {**killed, "id": "1" * 16}
    server.call("HSET", RegistryKeys().queues, "broken", "{")
    letters = DeadLetters(console.tools.get_domain(queue.domain), queue)
    assert (await letters.redrive(ids[1:], run=run_of(second["id"]))).moved == 1
    for each in (first, second):
        await write_as_silent(console, each)
    posted = [key.decode() for key in server.call("HKEYS", RegistryKeys().jobs)]
    assert posted.index(first["id"]) < posted.index(second["id"])
    async with LiveConsole(server.url) as other:
        await until(lambda: job_where(other, second, lambda item: item["moved"] == 1))
        await until(lambda: _none_left(other))


async def test_count_of_a_live_console_is_kept(
    console: LiveConsole, monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    monkeypatch.setattr(orphaned_jobs, "CHECK_S", 0.05)
    monkeypatch.setattr(orphaned_jobs, "CERTAIN_S", 60.0)
    job = await _begun(console)
    async with LiveConsole(server.url):
        await write_as_silent(console, job)
        await until(lambda: job_where(console, job, lambda item: item["moved"] >= 16))
        assert await _counted(console) == [f"redrive:{run_of(job['id'])}"]
