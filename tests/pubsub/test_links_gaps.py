"""Messages that one neighbour no longer has come from another (pubsub.md 4.5, decision 9)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from services.pubsub import recent_entries
from services.store.model.intervals import MAX_NUMBER
from tests.live import until
from tests.pubsub.cable import Cable
from tests.pubsub.conftest import Start
from tests.pubsub.live import LiveEdge
from tests.pubsub.stores import (
    Neighbour,
    NewServer,
    figure,
    has_all,
    held,
    linked,
    messages,
    numbered,
    send_all,
    store,
)
from tests.pubsub.test_links_stores import KIB, SMALL_LOG, copy_of, restore, stores_again


def big(number: int) -> list[bytes]:
    return [b"%d %b" % (i, KIB) for i in range(number)]


def is_trimmed(edge: LiveEdge, below: int) -> Callable[[], object]:
    async def is_short() -> bool:
        return len(await messages(edge)) < below

    return is_short


async def test_restored_store_recovers_messages_from_any_neighbour(
    new_server: NewServer, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a restored store recovers messages from any neighbour (4.4, 4.5).

    The first neighbour that it linked with had trimmed most of them, also from memory.
    """
    monkeypatch.setattr(recent_entries, "KEPT_BYTES", 0)
    forgetful = await start(await store(new_server), log=SMALL_LOG)
    keeper = await start(await store(new_server), neighbours=[forgetful.link_address])
    server = await store(new_server)
    async with Cable(keeper.places["link"][1]) as cable:
        restored = await start(server, neighbours=[forgetful.link_address, cable.address])
        for edge in (forgetful, keeper, restored):
            await linked(edge, 2)
        copy = await asyncio.to_thread(copy_of, server, tmp_path)
        await until(restored.is_ready)
        await stores_again(restored)
        for edge in (forgetful, keeper, restored):
            await linked(edge, 2)
        await send_all(await restored.client(), b"t", big(300))
        await has_all(keeper, big(300))
        await until(is_trimmed(forgetful, 100))
        cable.pull_out()
        await asyncio.to_thread(restore, server, copy)
        await until(restored.is_ready)
        await stores_again(restored)

        async def has_gaps() -> bool:
            return await figure(restored, "gaps") > 0

        await until(has_gaps)
        cable.plug_in()
        await has_all(restored, big(300))
    assert await figure(restored, "gaps") == 0


async def test_restored_store_recovers_trimmed_messages_from_memory(
    new_server: NewServer, start: Start, tmp_path: Path
) -> None:
    """Check that a restored store recovers trimmed messages from a neighbour's memory (4.5).

    They are sent from the log's beginning, as the place there may belong to an earlier era.
    """
    seldom = {**SMALL_LOG, "trim_s": 3.0}  # not before it has read its own log so far
    forgetful = await start(await store(new_server), log=seldom)
    server = await store(new_server)
    restored = await start(server, neighbours=[forgetful.link_address])
    for edge in (forgetful, restored):
        await linked(edge, 1)
    copy = await asyncio.to_thread(copy_of, server, tmp_path)
    await until(restored.is_ready)
    await stores_again(restored)
    for edge in (forgetful, restored):
        await linked(edge, 1)
    await send_all(await restored.client(), b"t", big(300))

    async def have_come() -> bool:
        return await figure(forgetful, "serial") >= 300

    await until(have_come)
    await until(is_trimmed(forgetful, 100))
    await asyncio.to_thread(restore, server, copy)
    await until(restored.is_ready)
    await stores_again(restored)
    await has_all(restored, big(300))
    assert await figure(restored, "gaps") == 0


async def test_gap_over_all_numbers_hides_no_messages(new_server: NewServer, start: Start) -> None:
    """Check that a gap over all numbers hides no messages that a third store creates later (4.5)."""
    honest = await start(await store(new_server))
    edge = await start(await store(new_server), neighbours=[honest.link_address])
    behind = await start(await store(new_server), neighbours=[edge.link_address])
    await linked(edge, 2)
    await linked(behind)
    await send_all(await honest.client(), b"t", [b"before"])
    await has_all(behind, [b"before"])
    ((store_id, incarnation),) = await held(honest)
    liar = await Neighbour.meet(edge, b"liar")
    await liar.say(b"GAP %b %b 1 %d" % (store_id, incarnation, MAX_NUMBER))
    await until(lambda: edge.value("penstock_link_gaps_total") > 0)
    await send_all(await honest.client(), b"t", numbered("after ", 10))
    for each in (edge, behind):
        await has_all(each, [b"before", *numbered("after ", 10)])
