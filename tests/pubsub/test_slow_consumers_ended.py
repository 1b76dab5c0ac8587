"""Ended consumers are not served further, while others wait (pubsub.md 3.6)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from services.pubsub.backlogs import Backlogs, TurnLimits
from services.pubsub.fanout import Fanout
from services.pubsub.recent_entries import RecentEntries
from services.pubsub.slow_consumers import SlowConsumers
from services.pubsub.subscriber import Subscriber, Subscription
from services.store.log.log import Entry, Place
from tests.live import until
from tests.pubsub.fake_wire import FakeWire, entry, subscribe

ENTRIES = [entry(1, serial) for serial in range(1, 12)]


class SlowLog:
    """A log that answers when the test allows it."""

    def __init__(self) -> None:
        self.asked, self.may_answer = asyncio.Event(), asyncio.Event()

    async def read(self, after: Place, until: Place) -> list[Entry]:
        self.asked.set()
        await self.may_answer.wait()
        return [entry for entry in ENTRIES if after < entry.place <= until]


@pytest.mark.parametrize("how", ["unsubscribes", "goes"])
async def test_consumer_that_ends_during_another_ones_read_gets_nothing_more(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a consumer that ends during another one's read gets nothing more.

    In the same round, one consumer waits for the log, and the next, which could be served from memory, ends.
    """
    log, recent, backlogs = SlowLog(), RecentEntries(), Backlogs(8 << 20, 128 << 20)
    fanout = Fanout(backlogs, lambda subscriber, place: slow_consumers.add(subscriber, place))
    slow_consumers = SlowConsumers(log, fanout, recent, backlogs, lambda *_: None)  # type: ignore[arg-type]

    def subscriber(identifier: bytes, since: Place) -> tuple[Subscriber, Subscription]:
        one = Subscriber(FakeWire(), True)  # type: ignore[arg-type]
        wanted = subscribe(one, identifier, since, 0)
        wanted.number = next(fanout.numbers)
        return one, wanted

    slow, _ = subscriber(b"1", Place(1, 0))
    late, wanted = subscriber(b"7", Place(1, 6))
    recent.add(ENTRIES[6:10], Place(1, 6))
    fanout.place = Place(1, 10)
    slow_consumers.add(slow, Place(1, 0))
    with monkeypatch.context() as patch:
        patch.setattr(backlogs, "turn", lambda: TurnLimits(1, 0))  # more is due than one turn sends
        slow_consumers.add_late(wanted, Place(1, 6))
    slow_consumers.start()
    try:
        await log.asked.wait()
        if how == "unsubscribes":
            del late.by_identifier[b"7"]
            slow_consumers.unsubscribed(wanted)
        else:
            slow_consumers.forget(late)
        written: list[Any] = list(late.wire.written)  # type: ignore[attr-defined]
        log.may_answer.set()
        await until(lambda: not len(slow_consumers))
        fanout.deliver(ENTRIES[10:])
        assert late.wire.written == written  # type: ignore[attr-defined]
        assert len(fanout) == 0
    finally:
        await slow_consumers.close()
