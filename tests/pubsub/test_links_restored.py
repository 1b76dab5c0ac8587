"""Links and subscribers of stores that were restored to an older copy (pubsub.md 4.2-4.5)."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from tests.live import until
from tests.pubsub.conftest import Start
from tests.pubsub.live import QUICK_LINKS, LiveEdge
from tests.pubsub.stores import (
    Neighbour,
    NewServer,
    has_all,
    linked,
    numbered,
    send_all,
    store,
)
from tests.pubsub.test_links_stores import copy_of, restore, stores_again
from tests.servers import Server

HOUR_MS = 3_600_000
# the store is back before its absence is noticed
SLOW_BEATS = {**QUICK_LINKS, "beat_s": 2.0, "silence_s": 15.0}


async def test_store_restored_to_before_its_link_recovers_its_own_messages(
    new_server: NewServer, start: Start, tmp_path: Path
) -> None:
    """Check that a store restored to before its link recovers its own messages (4.3, 4.4).

    Its link is new then, but its own messages never count as baseline.
    """
    one, server = await start(await store(new_server)), await store(new_server)
    two = await start(server)
    await send_all(await two.client(), b"t", numbered("before ", 5))
    copy = await asyncio.to_thread(copy_of, server, tmp_path)
    await until(two.is_ready)
    linking = await start(server, neighbours=[one.link_address])
    await linked(one)
    await linked(linking)
    await stores_again(two)
    await send_all(await two.client(), b"t", numbered("lost ", 10))
    await has_all(one, numbered("lost ", 10))
    await asyncio.to_thread(restore, server, copy)
    await until(two.is_ready)
    await stores_again(two)
    await has_all(two, [*numbered("before ", 5), *numbered("lost ", 10)])
    await send_all(await two.client(), b"t", numbered("after ", 3))
    await has_all(one, [*numbered("lost ", 10), *numbered("after ", 3)])


class AnHourBack:
    """A store whose clock was an hour ahead for a while, and whose data is then restored to before that."""

    def __init__(self, server: Server, edge: LiveEdge) -> None:
        self.server = server
        self.edge = edge
        self.copy = Path()

    async def begin(self, folder: Path) -> None:
        """Move the places of the log an hour ahead."""
        await stores_again(self.edge)
        self.copy = await asyncio.to_thread(copy_of, self.server, folder)
        await until(self.edge.is_ready)
        era = round(time.time() * 1000) + HOUR_MS
        key = self.edge.service.log.keys.log[1]
        await asyncio.to_thread(self.server.call, "HSET", key, "era", era, "server", "another one")
        await stores_again(self.edge)

    async def restore(self) -> None:
        """Restore, so that later messages have earlier places."""
        await asyncio.to_thread(restore, self.server, self.copy)
        await until(self.edge.is_ready)
        await stores_again(self.edge)


async def test_subscribers_are_served_after_the_log_went_back(
    new_server: NewServer, start: Start, tmp_path: Path
) -> None:
    """Check that earlier and new subscribers are served in log order after the log went back (3.1, 4.2)."""
    server = await store(new_server)
    edge = await start(server)
    back = AnHourBack(server, edge)
    await back.begin(tmp_path)
    old = await edge.client()
    await old.subscribe(b"1", b"u")
    await (await edge.client()).publish(b"u", b"before")
    assert await old.line() == b"MESSAGE 1 before\n"
    await back.restore()
    new = await edge.client()
    await new.subscribe(b"2", b"u")
    sender = await edge.client()
    for message in numbered("after ", 3):
        await sender.publish(b"u", message)
    assert await old.lines(3) == [b"MESSAGE 1 %b\n" % message for message in numbered("after ", 3)]
    assert await new.lines(3) == [b"MESSAGE 2 %b\n" % message for message in numbered("after ", 3)]
    assert edge.log.events("log_went_back")


async def test_memory_does_not_revive_messages_missing_in_a_restored_log(
    new_server: NewServer, start: Start, tmp_path: Path
) -> None:
    """Check that memory does not revive messages missing in a restored log, for slow consumers (3.4)."""
    server = await store(new_server)
    edge = await start(server)
    sender, subscriber = await edge.client(), await edge.client()
    await subscriber.subscribe(b"1", b"u")
    await sender.publish(b"u", b"kept")
    assert await subscriber.line() == b"MESSAGE 1 kept\n"
    place = edge.service.fanout.place
    assert place is not None
    back = AnHourBack(server, edge)
    await back.begin(tmp_path)
    await (await edge.client()).publish(b"u", b"lost")
    assert await subscriber.line() == b"MESSAGE 1 lost\n"
    assert edge.service.recent_entries.after(place)
    await back.restore()
    await (await edge.client()).publish(b"u", b"after")
    assert await subscriber.line() == b"MESSAGE 1 after\n"
    in_memory = edge.service.recent_entries.after(place)
    assert in_memory is None or in_memory == await edge.service.log.read(place)


async def test_links_continue_after_the_log_went_back(
    new_server: NewServer, start: Start, tmp_path: Path
) -> None:
    """Check that links continue after the log went back: places reported before are invalid (4.4, 4.5)."""
    server = await store(new_server)
    two = await start(server)
    one = await start(await store(new_server), neighbours=[two.link_address])
    await linked(one)
    await linked(two)
    back = AnHourBack(server, two)
    await back.begin(tmp_path)
    await linked(one)
    await send_all(await two.client(), b"t", numbered("before ", 5))
    await has_all(one, numbered("before ", 5))
    await back.restore()
    await send_all(await two.client(), b"t", numbered("two after ", 5))
    await send_all(await one.client(), b"t", numbered("one after ", 5))
    for edge in (one, two):
        expected = [*numbered("before ", 5), *numbered("two after ", 5), *numbered("one after ", 5)]
        await has_all(edge, expected)


async def test_standby_link_continues_after_the_log_went_back(
    new_server: NewServer, start: Start, tmp_path: Path
) -> None:
    """Check that a standby link continues after the log went back (4.4).

    Another connection has the lease, so this one must detect the change itself.
    """
    server = await store(new_server)
    edge = await start(server, link=SLOW_BEATS)
    back = AnHourBack(server, edge)
    await back.begin(tmp_path)
    holder = await Neighbour.meet(edge)
    spare = Neighbour(await edge.client("link"), holder.name)
    await spare.say(b"HAVE 1 other inc1 -")
    await spare.hear(b"HAVE")
    await spare.follow()
    await (await edge.client()).publish(b"u", b"before")

    while not (await spare.hear(b"ENTRY")).endswith(b" u before"):
        pass
    await back.restore()
    await holder.closed()
    await spare.closed()
