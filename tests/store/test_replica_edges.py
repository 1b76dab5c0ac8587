"""Two edges of one store that meet the same neighbour at once (pubsub.md 4.2, 4.3)."""

from __future__ import annotations

from typing import Any

import pytest

from services.store.intervals import Intervals
from services.store.replica import Held
from tests.servers import Server
from tests.store.desk import Desk
from tests.store.logbook import logbook


def held(last: int) -> Held:
    return {(b"one", b"i1"): Intervals.of([(1, last)])}


async def test_the_first_baseline_stays(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """4.3: written down once. The second edge has looked before the first writes, and writes after it."""
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
