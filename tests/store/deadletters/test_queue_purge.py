"""Purging ready messages, which leaves leased ones and counts all (docs/store.md, Purging)."""

from __future__ import annotations

import pytest

from services.store import Queue
from services.store.deadletters.delivery_tracking import DeliveryResult, DeliveryStatus
from services.store.deadletters.queue_purge import PurgePreview, PurgeProgress, QueuePurge, preview_purge
from services.store.model import records
from services.store.model.errors import OutcomeUnknown, QueueUnknown
from services.store.upkeep.stats_poller import read_store_stats
from tests.proxy import Proxy
from tests.servers import Server
from tests.store.deadletters.test_delivery_tracking import watched_fields, watching
from tests.store.desk import Desk, numbered, until

CONSISTENT = {"len": 0, "bytes": 0, "leased": 0}


async def emptied(desk: Desk, queue: Queue, run: str = "r") -> list[PurgeProgress]:
    return [step async for step in QueuePurge(desk.domain, queue, run).steps()]


async def test_ready_messages_are_purged_and_counted(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(2500))
    steps = await emptied(desk, queue)
    assert [step.messages for step in steps] == [1000, 2000, 2500, 2500]
    assert steps[-1] == PurgeProgress(2500, 2500 * 6, is_done=True)
    stats = await desk.stats(queue)
    assert (stats["ready"], stats["in_flight"], stats["bytes"], stats["oldest_age_ms"]) == (0, 0, 0, 0)
    assert (stats["emptied"], stats["acked"], stats["dead"], stats["purged"]) == (2500, 0, 0, 0)
    assert (await read_store_stats(desk.store.registry, desk.store.listing)).queues[
        queue.name
    ].emptied == 2500
    assert await desk.reconcile(queue) == CONSISTENT
    assert await desk.domain.link.call("XLEN", queue.keys[0]) == 0


async def test_leased_messages_stay(desk: Desk) -> None:
    """Check that leased messages, also parts of entries, stay and can be settled and returned."""
    queue = await desk.queue()
    await desk.put(queue, *numbered(100))
    first, second = await desk.take(queue, 10), await desk.take(queue, 10)
    assert (await emptied(desk, queue))[-1].messages == 80
    assert (await desk.stats(queue))["in_flight"] == 20
    assert await desk.reconcile(queue) == CONSISTENT
    await desk.settle(first)
    await desk.release(second)
    assert await desk.drain(queue) == numbered(10, 10)
    assert await desk.reconcile(queue) == CONSISTENT


async def test_returned_messages_are_purged(desk: Desk) -> None:
    """Check that messages returned to their place or to the end are purged with their notes."""
    queue = await desk.queue()
    await desk.put(queue, *numbered(64))
    taken = await desk.take(queue, 40)
    await desk.release(taken[:1], failed=True, error="no")
    await desk.release(taken[1:], failed=True, error="no", to_end=True)
    assert (await emptied(desk, queue))[-1].messages == 64
    assert (await desk.stats(queue))["ready"] == 0
    assert await desk.domain.link.call("XLEN", queue.keys[0]) == 0
    for key in ("l", "r", "f", "m", "x"):
        assert await desk.domain.link.call("EXISTS", queue.keys["sqlrfmdx".index(key)]) == 0, key
    assert await desk.reconcile(queue) == CONSISTENT


async def test_messages_put_after_the_start_stay(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(1500))
    run = QueuePurge(desk.domain, queue, "r")
    assert not (await run.step()).is_done
    await desk.put(queue, b"later")
    taken = await desk.take(queue, 1)
    await desk.release(taken)  # to its place, where it is purged
    done = [step async for step in run.steps()]
    assert done[-1] == PurgeProgress(1500, 1500 * 6, is_done=True)
    assert await desk.drain(queue) == [b"later"]


async def test_messages_put_after_the_preview_stay(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(3))
    await desk.take(queue, 1)
    counted = await preview_purge(desk.domain, queue)
    assert (counted.messages, counted.in_flight) == (2, 1)
    await desk.put(queue, *numbered(3, 3))
    run = QueuePurge(desk.domain, queue, "r", counted.until)
    assert [step.messages async for step in run.steps()] == [2, 2]
    assert await desk.drain(queue) == numbered(3, 3)


async def test_purge_of_an_empty_queue_removes_nothing(desk: Desk) -> None:
    """Check this for a new queue, and for one that had messages."""
    queue = await desk.queue()
    for number in range(2):
        counted = await preview_purge(desk.domain, queue)
        assert counted == PurgePreview(f"1-{number}", 0, 0)
        await desk.put(queue, b"later")
        run = QueuePurge(desk.domain, queue, f"r{number}", counted.until)
        assert [step async for step in run.steps()] == [PurgeProgress(0, 0, is_done=True)]
        assert await desk.drain(queue) == [b"later"]


async def test_future_bound_means_the_present_messages(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(1500))
    run = QueuePurge(desk.domain, queue, "r", "9-99999999999999999999")
    await run.step()
    await desk.put(queue, b"later")
    assert [step.messages async for step in run.steps()][-1] == 1500
    assert await desk.drain(queue) == [b"later"]


async def test_forgotten_purge_does_not_include_later_messages(desk: Desk) -> None:
    """Check this after an hour without a call, and in a store that lost its latest data."""
    queue = await desk.queue()
    await desk.put(queue, *numbered(1500))
    run = QueuePurge(desk.domain, queue, "r")
    await run.step()
    await QueuePurge(desk.domain, queue, "r").forget()
    await desk.put(queue, b"later")
    assert (await run.step()).messages == 500
    assert (await run.step()).is_done
    assert await desk.drain(queue) == [b"later"]


async def test_reused_numbers_are_later_messages(desk: Desk) -> None:
    """Check that messages with the numbers of entries lost in a failover are not purged."""
    queue = await desk.queue()
    await desk.put(queue, b"kept")
    call = desk.domain.link.call
    kept = {key: await call("DUMP", key) for key in queue.keys[:2]}
    await desk.put(queue, b"lost")
    counted = await preview_purge(desk.domain, queue)
    for key, dump in kept.items():
        await call("RESTORE", key, 0, dump, "REPLACE")
    await _new_generation(desk)
    async with desk.another() as other:
        await other.put(queue, b"new")
        assert (await preview_purge(other.domain, queue)).until == f"2-{counted.until.partition('-')[2]}"
        run = QueuePurge(other.domain, queue, "r", counted.until)
        assert [step.messages async for step in run.steps()] == [1, 1]
        assert await other.drain(queue) == [b"new"]


async def _new_generation(desk: Desk) -> None:
    dataset, _, generation = (await desk.domain.epoch()).partition(".")
    newer = f"{dataset}.{int(generation) + 1}"
    await desk.domain.link.call("SET", desk.domain.keys.epoch, newer)


async def test_messages_moved_to_the_end_after_the_start_stay(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(10))
    taken = await desk.take(queue, 1)
    run = QueuePurge(desk.domain, queue, "r")
    assert (await run.step()).messages == 9
    await desk.release(taken, to_end=True)
    assert (await run.step()).is_done
    assert await desk.drain(queue) == numbered(1)


async def test_returned_messages_beyond_the_bound_stay(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(3))
    run = QueuePurge(desk.domain, queue, "r")
    await run.step()
    await desk.put(queue, *numbered(3, 3))
    await desk.release(await desk.take(queue))
    assert (await run.step()) == PurgeProgress(3, 18, is_done=True)
    assert await desk.drain(queue) == numbered(3, 3)


async def test_moved_entries_are_purged(desk: Desk) -> None:
    """Check that compacted entries, which are kept outside the stream, are purged (docs/store.md)."""
    queue = await desk.queue()
    await desk.put(queue, *numbered(32))
    most, rest = await desk.take(queue, 31), await desk.take(queue, 1)
    await desk.settle(most)
    await desk.domain.tidy(queue, straggler_ms=-1000)
    await desk.release(rest)
    assert await desk.domain.link.call("HLEN", queue.keys[7]) == 1
    assert (await emptied(desk, queue))[-1].messages == 1
    assert await desk.domain.link.call("EXISTS", queue.keys[7]) == 0
    assert await desk.reconcile(queue) == CONSISTENT


async def test_moved_entries_are_purged_while_older_ones_are_leased(desk: Desk) -> None:
    """Check this if the stream's last entry is not the newest one."""
    queue = await desk.queue()
    await desk.put(queue, b"held")
    await desk.put(queue, *numbered(32))
    held, most, rest = await desk.take(queue, 1), await desk.take(queue, 31), await desk.take(queue, 1)
    await desk.settle(most)
    await desk.domain.tidy(queue, straggler_ms=-1000)
    await desk.release(rest)
    assert await desk.domain.link.call("HLEN", queue.keys[7]) == 1
    assert (await emptied(desk, queue))[-1] == PurgeProgress(1, 6, is_done=True)
    stats = await desk.stats(queue)
    assert (stats["ready"], stats["in_flight"]) == (0, 1)
    await desk.release(held)
    assert await desk.drain(queue) == [b"held"]
    assert await desk.reconcile(queue) == CONSISTENT


async def test_large_messages_are_purged_in_small_batches(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *(b"x" * (3 << 20) for _ in range(4)))
    assert [step.messages for step in await emptied(desk, queue)] == [2, 4, 4]


async def test_large_returned_messages_are_purged_in_small_batches(desk: Desk) -> None:
    """Check that batches stay small if the first messages are larger than the mean."""
    queue = await desk.queue()
    size = 1 << 20
    await desk.put(queue, *(b"x" * size for _ in range(10)))
    taken = [delivery for _ in range(10) for delivery in await desk.take(queue)]
    await desk.put(queue, *numbered(2000))
    await desk.release(taken)
    run = QueuePurge(desk.domain, queue, "r")
    assert [await run.step() for _ in range(2)] == [PurgeProgress(n, n * size, is_done=False) for n in (4, 8)]
    assert (await emptied(desk, queue))[-1] == PurgeProgress(2010, 10 * size + 2000 * 6, is_done=True)
    assert await desk.reconcile(queue) == CONSISTENT


async def test_expired_messages_become_dead_letters(desk: Desk) -> None:
    queue = await desk.queue(message_ttl="1ms")
    await desk.put(queue, *numbered(5))
    before = await desk.store.now_ms()
    await until(lambda: _is_later(desk, before + 5))
    assert (await emptied(desk, queue))[-1] == PurgeProgress(0, 0, is_done=True)
    assert {letter.reason async for letter in desk.dead(queue).matching()} == {"expired"}
    stats = await desk.stats(queue)
    assert (stats["expired"], stats["dead_letters"], stats["emptied"]) == (5, 5, 0)


async def _is_later(desk: Desk, than_ms: int) -> bool:
    return await desk.store.now_ms() > than_ms


async def test_tracked_message_is_reported_as_emptied(desk: Desk) -> None:
    queue = await desk.queue()
    watch = await watching(desk, queue)
    await emptied(desk, queue)
    assert await watch.poll() == DeliveryResult(DeliveryStatus.EMPTIED)
    assert await watched_fields(desk, queue) == (0, 0)


async def test_purge_ignores_pause_and_dead_letters(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(2))
    await desk.bury(queue, records.encode(b"dead"), "refused")
    await desk.store.catalogue.declare(
        queue.name, queue.spec.model_copy(update={"paused": True}), "test", replace=True
    )
    assert (await emptied(desk, queue))[-1].messages == 2
    assert await desk.dead(queue).count() == 1


async def test_purge_of_a_deleted_queue_raises_queue_unknown(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.store.catalogue.delete(queue)
    with pytest.raises(QueueUnknown):
        await emptied(desk, queue)
    with pytest.raises(QueueUnknown):
        await preview_purge(desk.domain, queue)


async def test_count_is_right_after_lost_answers(server: Server) -> None:
    """Check the count after one lost answer, and after the loss of all answers."""
    async with Proxy(server.port) as proxy, Desk(proxy.url) as desk:
        queue = await desk.queue()
        await desk.put(queue, *numbered(2500))
        run = QueuePurge(desk.domain, queue, "r")
        proxy.lose_replies_to = b"ps1_empty"
        with pytest.raises(OutcomeUnknown):
            await run.step()
        proxy.lose_replies_to = b""
        steps = [step async for step in run.steps()]
        assert steps[-1] == PurgeProgress(2500, 2500 * 6, is_done=True)
        assert (await desk.stats(queue))["emptied"] == 2500
        assert await desk.domain.link.call("PTTL", desk.domain.keys.emptied("r")) > 0
