"""The report of the analytics job in the store: newer reports replace older ones, and invalid ones are refused."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from services.store import Store
from services.store.model.errors import NotInitialised, ReportUnknown, StoreFault, StoreUnavailable
from services.store.model.keys import RegistryKeys
from services.store.redis.rights import analytics_rules
from services.store.report.report import MOST_OCTETS, Report
from services.store.report.report_figures import Figures
from services.store.report.reports import keep_reading, read_report, write_report
from tests.reports import NOW_MS, document, report
from tests.servers import Server
from tests.store.desk import Desk, until

KEY = RegistryKeys().report


async def write(url: str, one: Report, **how: Any) -> bool:
    """Write a report from a thread without an event loop."""
    wanted = {"patience_s": 0.5, **how}
    return await asyncio.to_thread(write_report, url, one.encode(), one.now_ms, **wanted)


async def test_report_is_read_as_written(desk: Desk, server: Server) -> None:
    assert await read_report(desk.store.registry) is None
    written = report(run="ü\u202e<script>")
    assert await write(server.url, written)
    assert await read_report(desk.store.registry) == written
    assert json.loads(written.encode()) == json.loads(json.dumps(document(run="ü\u202e<script>")))


async def test_an_older_one_does_not_replace_a_newer_one(desk: Desk, server: Server) -> None:
    newer, older = report(run="newer"), report(run="older", now_ms=NOW_MS - 1)
    assert await write(server.url, newer)
    assert not await write(server.url, older)
    assert await read_report(desk.store.registry) == newer
    again = report(run="again")
    assert await write(server.url, again)
    assert await read_report(desk.store.registry) == again


async def test_report_from_the_future_does_not_block_later_ones(desk: Desk, server: Server) -> None:
    """Check that a report with a time in the future, from a wrong clock, does not block later reports."""
    now = await desk.store.now_ms()
    assert await write(server.url, report(now_ms=now + 2 * 3_600_000))
    assert await write(server.url, report(run="right", now_ms=now))
    assert await write(server.url, report(run="a little ahead", now_ms=now + 60_000))
    assert not await write(server.url, report(now_ms=now))


async def test_store_that_refuses_writes_gives_the_reason(desk: Desk, server: Server) -> None:
    used = int(server.info("memory")["used_memory"])
    with server.configured(maxmemory=str(used // 2)), pytest.raises(StoreUnavailable, match="maxmemory"):
        await write(server.url, report())
    server.call("REPLICAOF", "127.0.0.1", "1")
    try:
        with pytest.raises(StoreUnavailable, match=r"(?i)readonly|read.only"):
            await write(server.url, report())
    finally:
        server.call("REPLICAOF", "NO", "ONE")
    with pytest.raises(StoreUnavailable):
        await write("redis://127.0.0.1:1", report(), patience_s=0.1)
    assert await read_report(desk.store.registry) is None


async def test_a_store_without_our_functions_is_not_set_up(desk: Desk, server: Server) -> None:
    server.call("FUNCTION", "FLUSH")
    try:
        with pytest.raises(NotInitialised):
            await write(server.url, report())
    finally:
        await desk.store.initialise()


async def test_another_version_is_named(desk: Desk, server: Server) -> None:
    server.call("SET", KEY, f"{NOW_MS} {json.dumps({**document(), 'version': 9})}")
    with pytest.raises(ReportUnknown, match="version 9"):
        await read_report(desk.store.registry)


async def test_report_of_an_older_version_shows_what_its_run_missed(desk: Desk, server: Server) -> None:
    """Check that a report of an older version, without figures of the period, shows all that its run missed."""
    old = document()
    del old["missing"]
    old["records"]["samples"]["lost"], old["records"]["dead"]["quarantined"] = 5, 2
    server.call("SET", KEY, f"{NOW_MS} {json.dumps(old)}")
    found = await read_report(desk.store.registry)
    assert found is not None
    assert (found.missing.lost_samples, found.missing.quarantined_dead) == (5, 2)


async def test_fields_of_later_versions_of_this_one_are_left_alone(desk: Desk, server: Server) -> None:
    server.call("SET", KEY, f"{NOW_MS} {json.dumps({**document(), 'weather': 'fine'})}")
    assert await read_report(desk.store.registry) == report()


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"nonsense",
        b"1 []",
        b"1 {}",
        b'1 {"version": 1}',
        b"1 \xff",
        b"1 " + json.dumps(document(run="\ud800")).encode(),
        b"1 " + json.dumps(document(put={"counts": [], "p50": float("nan"), "p90": 0, "p99": 0})).encode(),
        b"1 " + b"[" * 60_000,
        b"1 " + report(run="x" * MOST_OCTETS).encode(),
    ],
    ids=lambda value: str(value[:20]),
)
async def test_invalid_report_is_an_error(desk: Desk, server: Server, value: bytes) -> None:
    server.call("SET", KEY, value)
    with pytest.raises(StoreFault, match="the report in the store"):
        await read_report(desk.store.registry)


async def test_failing_callback_does_not_stop_polling(desk: Desk, server: Server) -> None:
    """Check that after an error of the receiver the old figures are withdrawn and the next report is delivered."""
    results: list[float | None] = []

    def receive(found: Figures | None) -> None:
        results.append(found["time"][()] if found is not None else None)
        if len(results) < 4:
            raise KeyError("a fault")

    assert await write(server.url, report())
    reading = asyncio.create_task(keep_reading(desk.store.registry, receive, 0.0))
    await until(lambda: len(results) > 4 or reading.done())
    reading.cancel()
    assert results[:5] == [results[0], None, results[0], None, results[0]]
    assert results[0] is not None


async def test_the_jobs_own_user_may_write_it_and_nothing_else(desk: Desk, server: Server) -> None:
    server.call("ACL", "SETUSER", "analytics", *analytics_rules(), ">secret")
    try:
        url = f"redis://analytics:secret@127.0.0.1:{server.port}"
        assert await write(url, report())
        store = Store(url, "reader")
        assert await read_report(store.registry) == report()
        assert await store.registry.domains() == ["main"]
        await store.close()
        with server.client() as client:
            client.call("AUTH", "analytics", "secret")
            for command in (
                ("SET", RegistryKeys().epoch, "x"),
                ("DEL", KEY),
                ("XADD", "ps:{main}:samples", "*", "v", "1"),
                ("GET", "other"),
                ("CONFIG", "GET", "*"),
                ("FCALL", "ps1_set_epoch", 1, RegistryKeys().epoch, "a", "b"),
            ):
                with pytest.raises(Exception, match="permission"):
                    client.call(*command)
    finally:
        server.call("ACL", "DELUSER", "analytics")
