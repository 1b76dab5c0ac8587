"""Test the work queue: no key is lost or polled too often (docs/kubernetes.md, "Its metrics": looks)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest
from penstock_operator.cluster.resources import Key, Kind
from penstock_operator.cluster.work_queue import (
    FIRST_PAUSE_S,
    LONGEST_PAUSE_S,
    LONGEST_UNSETTLED_S,
    WORKERS,
    WorkQueue,
)

from tests.operator.hurry import hurried

ONE, OTHER = Key(Kind.QUEUE, "shop", "one"), Key(Kind.QUEUE, "shop", "other")
FIRST = Key(Kind.PEER, "", "")
JITTER = 0.2


class Broken(Exception):
    pass


class Reconciliations:
    """The times of reconciliations. `fails` returns whether the n-th one of a key fails."""

    def __init__(
        self, fails: Callable[[int], bool] = lambda _: False, lasts_s: float = 0, *, unsettled: bool = False
    ) -> None:
        self._unsettled = unsettled
        self.at: list[float] = []
        self.count: Counter[Key] = Counter()
        self.failed: list[Exception] = []
        self.work = WorkQueue(self._reconcile, lambda _, error: self.failed.append(error), first=FIRST)
        self._fails = fails
        self._lasts_s = lasts_s

    async def _reconcile(self, key: Key) -> bool:
        self.count[key] += 1
        self.at.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self._lasts_s)
        if self._fails(self.count[key]):
            raise Broken
        return not self._unsettled

    @property
    def pauses(self) -> list[float]:
        return [later - sooner for sooner, later in zip(self.at, self.at[1:], strict=False)]

    async def run(self, seconds: float) -> None:
        running = asyncio.create_task(self.work.run())
        await asyncio.sleep(seconds)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def about(pause_s: float) -> object:
    return pytest.approx(pause_s, rel=JITTER)


def test_backoff_grows_and_is_bounded() -> None:
    runs = Reconciliations(lambda _: True)

    async def fail() -> None:
        runs.work.add(ONE)
        await runs.run(600)

    hurried(fail())
    grown = [FIRST_PAUSE_S * 2**number for number in range(7)]
    assert runs.pauses[:7] == [about(pause_s) for pause_s in grown]
    assert grown[-1] < LONGEST_PAUSE_S < 2 * grown[-1]
    assert runs.pauses[7:] == [about(LONGEST_PAUSE_S)] * len(runs.pauses[7:])
    assert len(runs.pauses) > 12
    assert len(runs.failed) == len(runs.at)


def test_unfinished_keys_are_retried_sooner_than_failed_ones() -> None:
    runs = Reconciliations(unsettled=True)

    async def refuse() -> None:
        runs.work.add(ONE)
        await runs.run(100)

    hurried(refuse())
    assert runs.pauses[:5] == [about(FIRST_PAUSE_S * 2**number) for number in range(5)]
    assert runs.pauses[5:] == [about(LONGEST_UNSETTLED_S)] * len(runs.pauses[5:])
    assert len(runs.pauses) > 8
    assert not runs.failed


def test_success_resets_backoff() -> None:
    runs = Reconciliations(lambda number: number not in (4, 8))

    async def fail() -> None:
        runs.work.add(ONE)
        await runs.run(30)
        assert runs.count[ONE] == 4
        runs.work.add(ONE)
        await runs.run(30)

    hurried(fail())
    assert runs.count[ONE] == 8
    assert runs.pauses[:3] == [about(FIRST_PAUSE_S * grown) for grown in (1, 2, 4)]
    assert runs.pauses[4:] == [about(FIRST_PAUSE_S * grown) for grown in (1, 2, 4)]


def test_added_key_is_reconciled_at_once() -> None:
    """Check that an added key is reconciled at once after any number of failures, without its scheduled retry."""
    runs = Reconciliations(lambda number: number < 8)

    async def fail() -> None:
        runs.work.add(ONE)
        await runs.run(FIRST_PAUSE_S * 100)
        assert runs.count[ONE] == 7
        runs.work.add(ONE)
        await runs.run(0.01)
        assert runs.count[ONE] == 8
        await runs.run(LONGEST_PAUSE_S * 2)

    hurried(fail())
    assert runs.count[ONE] == 8


def test_failing_key_does_not_block_others() -> None:
    runs = Reconciliations(lambda _: True)

    async def fail() -> None:
        runs.work.add(ONE)
        runs.work.add(OTHER)
        await runs.run(0.01)
        assert runs.count == {ONE: 1, OTHER: 1}
        runs.work.forget(ONE)
        await runs.run(FIRST_PAUSE_S * 2)

    hurried(fail())
    assert runs.count == {ONE: 1, OTHER: 2}


def test_busy_key_does_not_block_others() -> None:
    """Check that a busy key occupies one worker, and is reconciled once more for any number of additions meanwhile."""
    runs = Reconciliations(lasts_s=10)

    async def crowd() -> None:
        running = asyncio.create_task(runs.run(100))
        for _ in range(2 * WORKERS):
            runs.work.add(ONE)
            await asyncio.sleep(0.25)
        runs.work.add(OTHER)
        assert runs.work.depth == 3
        await running

    hurried(crowd())
    assert runs.at == [0, 8, 10]
    assert runs.count == {ONE: 2, OTHER: 1}


def test_locked_key_is_not_reconciled() -> None:
    """Check that a locked key is not reconciled, as for a queue that is being deleted."""
    runs = Reconciliations()

    async def delete() -> None:
        running = asyncio.create_task(runs.run(100))
        async with runs.work.alone(ONE):
            runs.work.add(ONE)
            runs.work.add(OTHER)
            await asyncio.sleep(10)
            assert runs.count == {OTHER: 1}
        await running

    hurried(delete())
    assert runs.at == [0, 10]


def test_first_key_precedes_all_others() -> None:
    """Check that the first key is reconciled before all others, although it was added last and all workers are busy."""
    order: list[Key] = []
    urgent = FIRST

    async def reconcile(key: Key) -> bool:
        order.append(key)
        await asyncio.sleep(1)
        return True

    async def run() -> None:
        work = WorkQueue(reconcile, lambda _key, _error: None, first=urgent)
        for number in range(3 * WORKERS):
            work.add(Key(Kind.QUEUE, "shop", f"q{number}"))
        running = asyncio.create_task(work.run())
        await asyncio.sleep(0.5)
        work.add(urgent)
        await asyncio.sleep(1)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    hurried(run())
    assert order.index(urgent) == WORKERS
