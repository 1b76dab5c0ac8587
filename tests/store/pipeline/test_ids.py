"""Ids of RQP/cast's messages: recently assigned ids are not reused (rqp_cast.md 2.3)."""

from __future__ import annotations

import asyncio
import shutil
from itertools import combinations

import pytest

from services.store import PipeSettings
from services.store.catalogue.registry import MAX_ID
from services.store.model.errors import NotInitialised
from tests.servers import Server
from tests.store.desk import Desk

PATIENT = PipeSettings(patience_s=20.0)
MANY = 1000
APART = 1 << 28
KEY = "ps:{registry}:cast_ids"


async def given(server: Server, count: int = MANY) -> int:
    """Return the first of `count` ids; set the store up if needed."""
    async with Desk(server, pipe=PATIENT) as desk:
        return await desk.store.registry.next_ids(count)


def distance(first: int, second: int) -> int:
    """Return the distance of two ids in the range, which wraps around."""
    return min((first - second) % MAX_ID, (second - first) % MAX_ID)


def set_last(server: Server, last: int) -> None:
    by = server.call("GET", KEY).partition(b" ")[0]
    server.call("SET", KEY, by + b" %d" % last)


async def test_ids_are_given_out_once(desk: Desk) -> None:
    async with desk.another() as other:
        blocks = await asyncio.gather(
            *(one.store.registry.next_ids(10) for one in (desk, other) for _ in range(20))
        )
    assert len({first + index for first in blocks for index in range(10)}) == 400
    assert max(distance(a, b) for a, b in combinations(blocks, 2)) == 390, "one after the other"


async def test_ids_wrap_around_and_skip_zero(server: Server, desk: Desk) -> None:
    registry = desk.store.registry
    await registry.next_ids(1)
    set_last(server, MAX_ID - 5)
    assert await registry.next_ids(3) == MAX_ID - 4
    assert await registry.next_ids(10) == 1, "ten in a row, none of them 0; the last ones are left out"
    assert await registry.next_ids(1) == 11
    set_last(server, MAX_ID - 1)
    assert [await registry.next_ids(1) for _ in range(3)] == [MAX_ID, 1, 2]


@pytest.mark.parametrize("random", [0, 1, MAX_ID - MANY, MAX_ID - 1, MAX_ID])
@pytest.mark.parametrize("last", [None, 1, APART, MAX_ID - 1, MAX_ID])
async def test_ids_stay_in_range_from_any_start(
    server: Server, desk: Desk, last: int | None, random: int
) -> None:
    registry = desk.store.registry
    if last is not None:
        server.call("SET", KEY, f"0abc {last}")
    epoch = await registry.epoch()
    keys = [registry.keys.epoch, registry.keys.cast_ids]
    first = await registry.link.function("next_ids", keys, epoch, MANY, random)
    assert 1 <= first <= MAX_ID - MANY + 1
    assert last is None or distance(first, last) >= APART - MANY


async def test_wiped_store_begins_with_other_ids(server: Server) -> None:
    """Check that a wiped store starts with other ids; this fails by chance once in 400,000 runs."""
    first = await given(server)
    server.clear()
    assert distance(first, await given(server)) >= MANY


async def test_ids_of_an_older_version_begin_elsewhere(server: Server, desk: Desk) -> None:
    server.call("SET", KEY, 1_700_000_000)
    assert distance(await given(server), 1_700_000_000) >= MANY


async def test_restarted_server_skips_ids_that_may_be_lost(own_server: Server) -> None:
    """Check that a restarted server skips ids that may not have reached the disk or a replica."""
    first = await given(own_server)
    own_server.kill9()
    own_server.restart()
    assert distance(first, await given(own_server)) >= APART - MANY


async def test_older_copy_can_be_restored_twice(own_server: Server) -> None:
    """Check that each restored copy starts with other ids than the original."""
    kept, copy = own_server.directory, own_server.directory.with_name("copy")
    blocks = [await given(own_server)]
    own_server.terminate()
    shutil.copytree(kept, copy)
    own_server.restart()
    blocks.append(await given(own_server))
    for _ in range(2):
        own_server.kill9()
        shutil.rmtree(kept)
        shutil.copytree(copy, kept)
        own_server.restart()
        blocks.append(await given(own_server))
    assert all(distance(a, b) >= MANY for a, b in combinations(blocks, 2))


async def test_empty_store_gives_no_ids(desk: Desk, server: Server) -> None:
    server.call("FLUSHALL", "SYNC")
    with pytest.raises(NotInitialised):
        await desk.store.registry.next_ids(1)
