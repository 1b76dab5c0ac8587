"""Test two consoles of one store, which list and cancel each other's jobs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from services.console.jobs import jobs as jobs_
from services.console.jobs.job_board import ORPHANED, SILENT_MS
from services.store.catalogue.job_board import JobBoard
from services.store.model.keys import RegistryKeys
from tests.console.live_console import Events, LiveConsole
from tests.live import until
from tests.servers import Server

REDRIVE = "/queues/orders/dead/redrive"
SLOW = {"all": True, "rate": 8}


@pytest.fixture
async def other(server: Server) -> AsyncIterator[LiveConsole]:
    async with LiveConsole(server.url) as other:
        yield other


async def _begun(console: LiveConsole, body: dict[str, Any], number: int = 40) -> dict[str, Any]:
    queue = await console.declare("orders")
    await console.bury(queue, *(b"%d" % each for each in range(number)))
    reply = await console.ask("POST", REDRIVE, body)
    assert reply.status == 202
    found: dict[str, Any] = reply.document
    return found


async def test_all_consoles_list_a_job(console: LiveConsole, other: LiveConsole) -> None:
    job = await _begun(console, SLOW)
    path = f"/jobs/{job['id']}"
    assert (await other.found(path))["state"] == "running"
    assert [each["id"] for each in (await other.get("/jobs")).items] == [job["id"]]

    async def moves() -> bool:
        return bool((await other.found(path))["moved"] >= 8)

    await until(moves)
    async with other.session.get(f"{other.base}/api/v1/events") as response:
        events = Events(response)
        while not (event := await events.next("jobs"))["items"]:
            pass
    assert event["items"][0]["id"] == job["id"]
    async with console.session.get(f"{console.base}/api/v1/events") as response:
        assert [each["id"] for each in (await Events(response).next("jobs"))["items"]] == [job["id"]]


async def test_all_consoles_show_the_result(console: LiveConsole, other: LiveConsole) -> None:
    job = await _begun(console, {"all": True})

    async def ended() -> Any:
        found = await other.found(f"/jobs/{job['id']}")
        return found if found["state"] != "running" else None

    seen = await until(ended)
    assert (seen["state"], seen["moved"], seen["matched"]) == ("done", 40, 40)
    assert seen == await console.found(f"/jobs/{job['id']}")
    second = await other.job(await other.ask("POST", REDRIVE, {"all": True}))
    ids = [second["id"], job["id"]]
    for each in (console, other):
        assert [item["id"] for item in (await each.get("/jobs")).items] == ids
        page = await each.found("/jobs?limit=1")
        assert [item["id"] for item in (await each.get(f"/jobs?cursor={page['next']}")).items] == ids[1:]


async def test_job_is_cancelled_from_another_console(console: LiveConsole, other: LiveConsole) -> None:
    job = await _begun(console, SLOW)
    ended = (await other.ask("DELETE", f"/jobs/{job['id']}")).document
    assert ended["state"] == "cancelled"
    assert ended == await console.found(f"/jobs/{job['id']}")
    assert (await console.stats("orders"))["dead_letters"] == 40 - ended["moved"]
    assert (await other.ask("DELETE", f"/jobs/{job['id']}")).document == ended


async def test_jobs_are_listed_after_their_console_stopped(server: Server, other: LiveConsole) -> None:
    async with LiveConsole(server.url) as first:
        job = await _begun(first, SLOW)
    found = await other.found(f"/jobs/{job['id']}")
    assert (found["state"], found["error"]) == (
        "cancelled",
        "the console was stopped: repeat the request to continue with the rest",
    )


async def _written_long_ago(console: LiveConsole, fields: dict[str, Any]) -> None:
    """Write a job as a console that was killed long ago."""
    link = console.tools.registry.link
    text = f"{await link.now_ms() - SILENT_MS} {json.dumps(fields)}"
    await link.call("HSET", RegistryKeys().jobs, fields["id"], text)


async def test_job_of_a_killed_console_is_failed(
    console: LiveConsole, other: LiveConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await _begun(console, SLOW)
    killed = {**job, "id": "0123456789abcdef"}
    await _written_long_ago(other, killed)
    found = await other.found(f"/jobs/{killed['id']}")
    assert (found["state"], found["error"]) == ("failed", ORPHANED)
    assert found["endedAt"] is not None
    assert (await other.ask("DELETE", f"/jobs/{killed['id']}")).document["state"] == "failed"
    # and one that is orphaned, which is not noticed yet
    monkeypatch.setattr(jobs_, "REMOTE_CANCEL_S", 0.2)
    silent = {**job, "id": "fedcba9876543210"}
    await other.tools.registry.link.function(
        "process", [RegistryKeys().jobs], silent["id"], json.dumps(silent), 60_000
    )
    reply = await other.ask("DELETE", f"/jobs/{silent['id']}")
    assert (reply.status, reply.label) == (504, "no_answer")


async def test_unreadable_jobs_are_left_out(console: LiveConsole) -> None:
    link = console.tools.registry.link
    for member, text in ((b"a", b"x"), (b"b", b"1 ["), (b"c", b"1 7"), (b"d", b"1 {}"), (b"\xff", b"1 {}")):
        await link.call("HSET", RegistryKeys().jobs, member, text)
    assert (await console.get("/jobs")).items == []
    assert (await console.get("/jobs/a")).label == "job_unknown"


async def test_cursor_of_a_deleted_job_is_valid(console: LiveConsole, other: LiveConsole) -> None:
    ids = [(await _begun(console, {"all": True}, 1))["id"]]
    for _ in range(3):
        ids.insert(0, (await console.job(await console.ask("POST", REDRIVE, {"all": True})))["id"])
    await until(lambda: _ended(other, ids))
    page = await other.found("/jobs?limit=2")
    assert [job["id"] for job in page["items"]] == ids[:2]
    await JobBoard(other.tools.registry).remove([ids[1]])
    rest = await other.found(f"/jobs?cursor={page['next']}")
    assert [job["id"] for job in rest["items"]] == ids[2:]


async def _ended(console: LiveConsole, ids: list[str]) -> bool:
    rows = (await console.get("/jobs")).items
    return [job["id"] for job in rows if job["state"] == "done"] == ids
