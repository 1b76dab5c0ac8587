"""Tails of a log that was restored from an older copy with an older clock (pubsub.md 4.2, 4.4)."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from services.store.log import tail as tail_module
from services.store.log.log import Entry
from services.store.log.tail import Tail
from tests.servers import Server
from tests.store.desk import Desk, until
from tests.store.logbook import arrived, logbook

HOUR_MS = 3_600_000
NEIGHBOUR = (b"one", b"i1")


def copy_of(server: Server) -> Callable[[], None]:
    """Copy all of its data; return a function that restores the copy."""
    copy = {key: server.call("DUMP", key) for key in server.call("KEYS", "*")}

    def restore() -> None:
        for key, value in copy.items():
            server.call("RESTORE", key, 0, value, "REPLACE")

    return restore


async def test_tail_follows_restored_data_with_older_places(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a tail follows new entries with places before those read earlier, as the clock was an hour ahead."""
    monkeypatch.setattr(tail_module, "BLOCK_MS", 50)
    async with Desk(server) as desk, logbook(desk) as book:
        await book.accept(arrived(NEIGHBOUR, 1, b"t kept"))
        restore = copy_of(server)
        ahead = round(time.time() * 1000) + HOUR_MS
        server.call("HSET", book.log.keys.log[1], "era", ahead)
        tail = Tail(desk.store.connector, book.log.keys, 0)
        assert await tail.next() == []
        found: list[Entry] = []

        async def came() -> list[Entry]:
            found.extend(await tail.next())
            return found

        await book.accept(arrived(NEIGHBOUR, 2, b"t lost"))
        await until(came)
        lost = found.pop()
        assert lost.place.era >= ahead
        restore()
        assert await tail.next() == []  # now it knows
        await book.accept(arrived(NEIGHBOUR, 3, b"t after"))
        await until(came)
        assert [entry.block for entry in found] == [b"SEND t after\n"]
        assert found[0].place < lost.place
        assert tail.place == found[0].place
        await tail.close()
