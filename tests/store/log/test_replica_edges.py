"""Races between the steps of one edge and another edge, or the loss of the store (pubsub.md 4.2, 4.3)."""

from __future__ import annotations

from typing import Any

import pytest

from services.store.log.replica import Held
from services.store.model.errors import NotInitialised
from services.store.model.intervals import Intervals
from tests.servers import Server
from tests.store.desk import Desk
from tests.store.logbook import logbook


def held(last: int) -> Held:
    return {(b"one", b"i1"): Intervals.of([(1, last)])}


async def test_first_baseline_stays(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that the first baseline stays if a second edge reads before it is written and writes afterwards (4.3)."""
    async with (
        Desk(server) as first_desk,
        Desk(server) as second_desk,
        logbook(first_desk) as first,
        logbook(second_desk) as second,
    ):
        link = second_desk.domain.link
        call = link.call

        async def call_slowly(*command: Any, attempts: int = 2) -> Any:
            reply = await call(*command, attempts=attempts)
            if command[0] == "HEXISTS":
                assert await first.replica.baseline(b"one", held(5)) == held(5)
            return reply

        monkeypatch.setattr(link, "call", call_slowly)
        assert await second.replica.baseline(b"one", held(9)) == held(5)
        assert await first.replica.baseline(b"one", held(7)) == held(5)


@pytest.mark.parametrize("behind", ["HEXISTS", "HSETNX"])
async def test_store_emptied_meanwhile_raises_not_initialised(
    server: Server, monkeypatch: pytest.MonkeyPatch, behind: str
) -> None:
    """Check that a store emptied in between, which lost the baseline, raises NotInitialised (4.3)."""
    async with Desk(server) as desk, logbook(desk) as book:
        if behind == "HEXISTS":  # it is known
            assert await book.replica.baseline(b"one", held(5)) == held(5)
        call = desk.domain.link.call

        async def call_and_empty(*command: Any, attempts: int = 2) -> Any:
            reply = await call(*command, attempts=attempts)
            if command[0] == behind:
                server.call("FLUSHALL")
            return reply

        monkeypatch.setattr(desk.domain.link, "call", call_and_empty)
        with pytest.raises(NotInitialised):
            await book.replica.baseline(b"one", held(9))
