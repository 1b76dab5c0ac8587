"""Test that interrupted and deleted Redrives report exact counts (docs/kubernetes.md, "Redrive")."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial

import pytest
from penstock_operator.cluster.resources import Key
from penstock_operator.documents.redrive_spec import RedriveSpec
from penstock_operator.redrives.redrive_run import Progress, RedriveRun
from penstock_operator.redrives.redrive_status import REPORT_S
from penstock_operator.redrives.redrives import FOR_QUEUES_S, Redrives

from services.store import Store
from tests.operator.conftest import NewOperator
from tests.operator.inside import Clock, Inside, read
from tests.operator.keeper import Keeper
from tests.operator.program import OperatorProgram
from tests.operator.redrives.test_redrives import prepared, progress_of
from tests.operator.resource_documents import Seen, queue, redrive
from tests.proxy import Proxy
from tests.servers import Server, eventually
from tests.store.desk import numbered, until

REDRIVEN = "penstock_operator_redriven_total"
WRITTEN = "penstock_operator_status_patches_total"


def test_progress_is_reported_periodically(operator: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    """Check that progress is written periodically, but not for each of four steps a second."""
    prepared(seen, keeper, 100)
    began = time.monotonic()
    seen.apply(redrive("slow", "orders", rate=20))
    eventually(lambda: 0 < seen.get("redrive", "slow").get("status", {}).get("moved", 0) < 100)
    assert 0 < operator.metric(REDRIVEN) < 100
    seen.becomes("redrive", "slow", "True", "Complete", 60)
    ends = 2  # the first and the last are written at once
    assert operator.metric(WRITTEN, kind="redrives") <= (time.monotonic() - began) / REPORT_S + ends
    assert operator.metric(REDRIVEN) == 100


def test_store_killed_during_a_redrive(
    operator: OperatorProgram, seen: Seen, keeper: Keeper, store: Server
) -> None:
    prepared(seen, keeper, 60)
    seen.apply(redrive("again", "orders", rate=20))
    eventually(lambda: keeper.stats("orders")["redriven"] >= 20)
    store.kill9()
    seen.becomes("redrive", "again", "False", "Pending")
    store.start()
    seen.becomes("redrive", "again", "True", "Complete", 60)
    assert progress_of(seen, "again") == (60, 60, 0)
    assert keeper.stats("orders")["redriven"] == 60
    assert sorted(keeper.take("orders")) == numbered(60)
    assert operator.metric(REDRIVEN) == 60


async def test_lost_replies(store: Server, keeper: Keeper) -> None:
    """Check that letters are counted that the store moved in a step whose reply was lost."""
    await asyncio.to_thread(keeper.declare, "orders")
    await asyncio.to_thread(keeper.kill, "orders", 20)
    steps: list[Progress] = []

    async def record(progress: Progress) -> None:
        steps.append(progress)
        proxy.lose_replies_to = b"ps1_redrive" if len(steps) in (2, 3) else b""

    async with Proxy(store.port) as proxy:
        through = Store(proxy.url, "operator")
        spec = RedriveSpec.model_validate({"source": "orders", "rate": 20})
        ended = await RedriveRun(through, spec, "shop", "a-run", record).go(None)
        await through.close(1.0)
    assert proxy.lost == 2
    assert (ended.matched, ended.moved, ended.remaining) == (20, 20, 0)
    assert [step.moved for step in steps] == [0, 5, 10, 15, 20]
    assert (await asyncio.to_thread(keeper.stats, "orders"))["redriven"] == 20


class Run:
    """All Redrives, in the test's process. The test advances the time."""

    def __init__(self, inside: Inside, store: Store) -> None:
        self.again: list[Key] = []
        self.clock = Clock()
        self.redrives = Redrives(
            store, inside.statuses, inside.mirror, inside.metrics, self.again.append, self.clock
        )

    async def reason(self, seen: Seen, name: str) -> str:
        return (await asyncio.to_thread(seen.ready, "redrive", name))[1]


@pytest.fixture
async def run(inside: Inside, store: Server) -> AsyncIterator[Run]:
    client = Store(store.url, "operator")
    made = Run(inside, client)
    yield made
    await made.redrives.close()
    await client.close(1.0)


@pytest.mark.parametrize("later_s", [0, FOR_QUEUES_S])
async def test_target_deleted_during_a_redrive(
    run: Run, inside: Inside, seen: Seen, keeper: Keeper, later_s: float
) -> None:
    """Check that a deleted target is waited for up to a minute from the start, and moved letters are reported."""
    for name in ("orders", "other"):
        await asyncio.to_thread(keeper.declare, name)
    await asyncio.to_thread(keeper.kill, "orders", 40)
    seen.apply(redrive("again", "orders", target="other", rate=10))
    resource = read(seen, "redrive", "again")
    inside.mirror.put(resource)
    await run.redrives.reconcile(resource)
    await until(lambda: inside.count(REDRIVEN) > 0)
    run.clock.now += later_s
    await asyncio.to_thread(keeper.remove, "other")
    reason = "Failed" if later_s else "Pending"
    await until(partial(is_so, run, seen, reason))
    moved = 40 - len(await asyncio.to_thread(keeper.dead, "orders"))
    assert 0 < moved < 40
    assert progress_of(seen, "again") == (40, moved, 40 - moved)
    assert inside.count(REDRIVEN) == moved
    assert seen.condition("redrive", "again")["message"] == "target 'other' was deleted during the redrive"
    await until(lambda: run.again == ([] if later_s else [resource.key]))
    await until(partial(counts, keeper, 0 if later_s else 1))


async def test_minute_for_queues_starts_with_the_store(
    run: Run, inside: Inside, seen: Seen, keeper: Keeper
) -> None:
    """Check that the minute for missing queues starts with the store, and that declared queues have no time limit."""
    await asyncio.to_thread(keeper.declare, "other")
    seen.apply(redrive("again", "orders"), redrive("lost", "missing"), queue("to-come", queueName="orders"))
    resources = [read(seen, "redrive", name) for name in ("again", "lost")]
    resources = [replace(one, created="2020-01-01T00:00:00Z") for one in resources]
    for each in (*resources, read(seen, "queue", "to-come")):
        inside.mirror.put(each)

    async def reconciled(name: str, reason: str) -> None:
        (one,) = (each for each in resources if each.key.name == name)
        run.again.clear()
        newest = inside.mirror.get(one.key)
        assert newest is not None
        await run.redrives.reconcile(replace(newest, created=one.created))
        expected = [] if reason == "Failed" else [one.key]
        await until(lambda: run.again == expected and run.redrives.is_idle)
        assert await run.reason(seen, name) == reason

    await reconciled("again", "Pending")
    await reconciled("lost", "Pending")
    run.clock.now += FOR_QUEUES_S
    await reconciled("again", "Pending")
    await reconciled("lost", "Failed")


async def test_lost_domain_is_waited_for(run: Run, inside: Inside, seen: Seen, keeper: Keeper) -> None:
    """Check that a Redrive waits for a source in a lost domain, which may come back."""
    await asyncio.to_thread(keeper.declare, "orders", domain="other")
    await asyncio.to_thread(keeper.kill, "orders", 3)
    await asyncio.to_thread(keeper.lose_domain, "other")
    seen.apply(redrive("again", "orders"))
    resource = read(seen, "redrive", "again")
    inside.mirror.put(resource)
    for _ in range(2):
        run.again.clear()
        await run.redrives.reconcile(resource)
        await until(lambda: run.again == [resource.key] and run.redrives.is_idle)
        run.clock.now += FOR_QUEUES_S
    await until(partial(is_so, run, seen, "Pending"))
    assert "domain 'other' was set up and is empty now" in seen.condition("redrive", "again")["message"]


async def is_so(run: Run, seen: Seen, reason: str) -> bool:
    return await run.reason(seen, "again") == reason


async def counts(keeper: Keeper, number: int) -> bool:
    """Return whether the store counts this many runs."""
    return await asyncio.to_thread(keeper.runs, "orders") == number


def test_nearly_full_target(operator: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    """Check that a Redrive to a nearly full target runs and waits in turn, reported at intervals without warnings."""
    seen.declared(queue("orders"), queue("small", maxLength=2))
    keeper.kill("orders", 30)
    began = time.monotonic()
    seen.apply(redrive("again", "orders", target="small", rate=4))  # one message a step
    moved = 0

    def took_all() -> bool:
        nonlocal moved
        moved += len(keeper.take("small"))
        return moved == 30

    eventually(took_all, 120)
    seen.becomes("redrive", "again", "True", "Complete")
    events = [
        each
        for each in seen.cluster.items("events", seen.namespace)
        if each["involvedObject"]["name"] == "again"
    ]
    assert {each["type"] for each in events} == {"Normal"}
    minutes = (time.monotonic() - began) / 60
    turns = [each for each in events if each["reason"] in ("Running", "Pending")]
    assert len(turns) <= 2 + minutes


async def test_counts_are_consistent_after_a_kill(store: Server, keeper: Keeper) -> None:
    """Check that letters are counted that the store has moved after the last written status."""
    await asyncio.to_thread(keeper.declare, "orders")
    await asyncio.to_thread(keeper.kill, "orders", 20)
    steps: list[Progress] = []

    async def record_until_killed(progress: Progress) -> None:
        steps.append(progress)
        if len(steps) == 3:
            raise asyncio.CancelledError

    async def record(progress: Progress) -> None:
        steps.append(progress)

    through = Store(store.url, "operator")
    spec = RedriveSpec.model_validate({"source": "orders", "rate": 20})
    with pytest.raises(asyncio.CancelledError):
        await RedriveRun(through, spec, "shop", "a-run", record_until_killed).go(None)
    written = steps[1]
    steps.clear()
    ended = await RedriveRun(through, spec, "shop", "a-run", record).go(written)
    await through.close(1.0)
    assert written.moved == 5
    assert [(step.moved, step.remaining) for step in steps] == [(5, 15), (15, 5), (20, 0)]
    assert (ended.matched, ended.moved, ended.remaining) == (20, 20, 0)


def test_unreadable_status(new_operator: NewOperator, seen: Seen, keeper: Keeper) -> None:
    """Check that an unreadable status, which the API server accepts, stops only its own Redrive."""
    spoilt = {"small": "2026-11-25t15:00:00z", "late": "9999-12-31T23:59:59-23:00"}
    seen.apply(queue("orders"), *(redrive(name, "orders") for name in spoilt))
    for name, began in spoilt.items():
        seen.cluster.patch("redrive", name, {"status": {"startedAt": began}}, seen.namespace, "status")
    new_operator().ready()
    for name, began in spoilt.items():
        found = seen.becomes("redrive", name, "False", "Failed")
        assert f"status.startedAt is '{began}', which is not a valid time" in found["message"]
    seen.becomes("queue", "orders", "True", "Declared")
    keeper.kill("orders", 5)
    seen.apply(redrive("again", "orders"))
    seen.becomes("redrive", "again", "True", "Complete")
    assert progress_of(seen, "again") == (5, 5, 0)
