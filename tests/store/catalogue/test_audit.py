"""The audit log in the store (docs/store.md, The audit log)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.store.catalogue.audit import KEPT, MOST_OCTETS, AuditEntry, AuditLog
from services.store.model.errors import StoreUnavailable
from services.store.model.keys import RegistryKeys
from tests.proxy import Proxy
from tests.servers import Server
from tests.store.desk import Desk

KEY = RegistryKeys().audit
ENTRY = AuditEntry("eve", "operate", "10.0.0.1", "purge", "orders", "done", "7 letters")


async def test_lines_are_returned_newest_first(desk: Desk) -> None:
    audit, before = desk.store.audit, await desk.store.now_ms()
    assert (await audit.page()).lines == []
    ids = [await audit.append(replace(ENTRY, target=f"q{number}")) for number in range(3)]
    page = await audit.page()
    assert [line.id for line in page.lines] == ids[::-1]
    assert [line.entry.target for line in page.lines] == ["q2", "q1", "q0"]
    assert page.lines[2].entry == replace(ENTRY, target="q0")
    assert page.next is None
    assert before <= page.lines[2].at_ms <= page.lines[0].at_ms <= await desk.store.now_ms()


async def test_pages_continue_each_other(desk: Desk) -> None:
    """Check that pages continue each other even if a line is appended in between."""
    audit = desk.store.audit
    for number in range(7):
        await audit.append(replace(ENTRY, detail=str(number)))
    first = await audit.page(limit=3)
    assert first.next == first.lines[-1].id
    await audit.append(replace(ENTRY, detail="7"))
    second = await audit.page(first.next, 3)
    third = await audit.page(second.next or "", 3)
    results = [line.entry.detail for page in (first, second, third) for line in page.lines]
    assert results == list("6543210")
    assert third.next is None
    whole = await audit.page(limit=8)
    assert (len(whole.lines), whole.next) == (8, None)


@pytest.mark.parametrize("limit", [0, -1, 1001])
async def test_limit_of_a_page_is_checked(desk: Desk, limit: int) -> None:
    with pytest.raises(ValueError, match="a page has"):
        await desk.store.audit.page(limit=limit)


@pytest.mark.parametrize(
    "before",
    [
        "x",
        "1",
        "1-",
        "-1",
        "1-x",
        "1-2-3",
        "+",
        "( 1-1",
        "1-1\n",
        "9" * 20 + "-1",
        "0-0",
        "00-000",
        "0-0m",
        "1-1mm",
    ],
)
async def test_invalid_id_is_refused(desk: Desk, before: str) -> None:
    with pytest.raises(ValueError, match="is not the id of a line"):
        await desk.store.audit.page(before)


async def test_log_is_capped(desk: Desk, server: Server) -> None:
    for _ in range(0, 2 * KEPT, 1000):
        server.call("EVAL", f"for i = 1, 1000 do redis.call('XADD', '{KEY}', '*', 'who', 'x') end", 0)
    await desk.store.audit.append(ENTRY)
    assert KEPT <= server.call("XLEN", KEY) < KEPT + 1000
    assert (await desk.store.audit.page(limit=1)).lines[0].entry == ENTRY


async def test_minor_entries_do_not_displace_others(desk: Desk, server: Server) -> None:
    audit = AuditLog(desk.store.registry, kept=100)
    await audit.append(replace(ENTRY, target="changed"))
    for number in range(400):
        await audit.append(replace(ENTRY, target=f"q{number}", outcome="forbidden"), minor=True)
    assert server.call("XLEN", RegistryKeys().audit_minor) < 300
    lines = (await audit.page(limit=1000)).lines
    assert (lines[0].entry.target, lines[-1].entry.target) == ("q399", "changed")


@pytest.mark.parametrize("limit", [1, 2, 3, 10])
async def test_both_streams_are_read_as_one_log(desk: Desk, server: Server, limit: int) -> None:
    """Check that both streams are merged, including lines with equal ids."""
    for key, ids in ((KEY, "5-0 5-1 7-0 9-0"), (RegistryKeys().audit_minor, "4-0 5-0 5-1 7-0 8-0")):
        for identifier in ids.split():
            server.call("XADD", key, identifier, "who", "eve")
    results: list[str] = []
    before: str | None = ""
    while before is not None:
        page = await desk.store.audit.page(before, limit)
        assert len(page.lines) <= limit
        results += [line.id for line in page.lines]
        before = page.next
    assert results == ["9-0", "8-0m", "7-0", "7-0m", "5-1", "5-1m", "5-0", "5-0m", "4-0m"]


async def test_entry_may_have_any_octets_and_length(desk: Desk) -> None:
    entry = replace(ENTRY, who="\udcff<script>\n\0", target="", detail="é" * MOST_OCTETS)
    await desk.store.audit.append(entry)
    (line,) = (await desk.store.audit.page()).lines
    assert (line.entry.who, line.entry.target) == (entry.who, "")
    assert line.entry.detail == "é" * (MOST_OCTETS // 2) + "..."


async def test_unknown_fields_are_ignored_and_missing_ones_empty(desk: Desk, server: Server) -> None:
    server.call("XADD", KEY, "*", "who", "eve", "weather", "fine")
    (line,) = (await desk.store.audit.page()).lines
    assert line.entry == AuditEntry("eve", "", "", "", "", "", "")


async def test_append_is_repeated_after_a_lost_answer(desk: Desk, server: Server) -> None:
    async with Proxy(server.port) as proxy, Desk(proxy.url, initialise=False) as other:
        await other.store.audit.page()
        proxy.lose_replies_to = b"XADD"
        with pytest.raises(StoreUnavailable):
            await other.store.audit.append(ENTRY)
        assert proxy.lost > 0
        proxy.lose_replies_to = b""
        assert {line.entry for line in (await desk.store.audit.page()).lines} == {ENTRY}


async def test_unreachable_or_full_store_raises(own_server: Server) -> None:
    async with Desk(own_server) as desk:
        used = int(own_server.info("memory")["used_memory"])
        with (
            own_server.configured(maxmemory=str(used // 2)),
            pytest.raises(StoreUnavailable, match="maxmemory"),
        ):
            await desk.store.audit.append(ENTRY)
        own_server.kill9()
        with pytest.raises(StoreUnavailable):
            await desk.store.audit.append(ENTRY)
        with pytest.raises(StoreUnavailable):
            await desk.store.audit.page()
