"""Servers that lost their store, and stores with the same id (pubsub.md 4.3, 4.5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.live import until
from tests.pubsub.cable import Cable
from tests.pubsub.conftest import Start
from tests.pubsub.live import LiveEdge
from tests.pubsub.stores import (
    NewServer,
    linked,
    messages,
    send_all,
    store,
)
from tests.pubsub.test_links_stores import copy_of, restore


@asynccontextmanager
async def edge_over(cable: Cable) -> AsyncIterator[LiveEdge]:
    """Start an edge whose connection to its store can be cut."""
    edge = await LiveEdge(f"redis://{cable.address}").start()
    try:
        yield edge
        edge.check_no_fault_of_ours()
    finally:
        await edge.close()


async def test_server_without_its_store_is_replaced_by_another(new_server: NewServer, start: Start) -> None:
    """Check that a server without its store is replaced by another that reaches it (4.3).

    Its links stand, but would carry no more messages.
    """
    theirs = await store(new_server)
    async with Cable(theirs.port) as cable, edge_over(cable) as blind:
        seeing = await start(theirs)
        async with Cable(seeing.places["link"][1]) as to_seeing:
            to_seeing.pull_out()
            edge = await start(await store(new_server), neighbours=[blind.link_address, to_seeing.address])
            await until(lambda: blind.value("penstock_links_serving") == 1)
            await linked(edge)
            to_seeing.plug_in()
            sender, subscriber = await seeing.client(), await edge.client()
            await subscriber.subscribe(b"1", b"t")
            await sender.publish(b"t", b"before")
            assert await subscriber.line() == b"MESSAGE 1 before\n"
            cable.pinch()
            await sender.publish(b"t", b"after")
            assert await subscriber.line() == b"MESSAGE 1 after\n"
            assert not blind.value("penstock_links_serving")
            assert edge.value("penstock_links_following") == seeing.value("penstock_links_serving") == 1
            cable.release()
            await until(blind.is_ready)
        await sender.publish(b"t", b"with both again")
        assert await subscriber.line() == b"MESSAGE 1 with both again\n"


async def test_copied_store_is_reported_once(new_server: NewServer, start: Start, tmp_path: Path) -> None:
    """Check that a copied store is reported once (4.5).

    One of the two is followed; the log reports the other once as a copy.
    """
    original = await store(new_server)
    copy = await asyncio.to_thread(copy_of, original, tmp_path)
    copied = new_server()
    await asyncio.to_thread(restore, copied, copy)
    edges = [await start(original), await start(copied)]
    async with Cable(edges[1].places["link"][1]) as cable:
        edge = await start(await store(new_server), neighbours=[edges[0].link_address, cable.address])
        await until(lambda: edge.log.events("link_to_clone"))
        for each in edges:
            await send_all(await each.client(), b"t", [b"from %d" % edges.index(each)])

        async def has_one() -> bool:
            return len(await messages(edge)) == 1

        await until(has_one)
        carried = cable.carried + 10 * len(b"BEAT 1-1\n")
        await until(lambda: cable.carried > carried)  # while links that may report it again stand and beat
        assert edge.value("penstock_links_following") == 1
        (line,) = edge.log.events("link_to_clone")
    assert line.levelname == "ERROR"
    assert "a copied store needs an id of its own" in line.getMessage()
