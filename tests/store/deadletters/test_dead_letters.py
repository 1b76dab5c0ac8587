"""Dead letters: contents, bounds, filters, redrive and purge (docs/store.md)."""

import re

import pytest

from services.store import DeadLetters, Filter, QueueSpec
from services.store.model import records
from services.store.model.errors import DomainMismatch, QueueFull, QueuePaused, QueueUnknown
from services.store.upkeep.stats_poller import read_store_stats
from tests.store.desk import Desk, bodies, numbered, until


async def test_buried_message_is_kept_whole(desk: Desk) -> None:
    queue = await desk.queue()
    record = records.encode(b"body", {"priority": 4, "key": b"\xff"})
    await desk.bury(queue, record, "unencodable", "no such charset", origin="mca 10.0.0.1")
    (letter,) = [d async for d in desk.dead(queue).matching()]
    assert (letter.body, letter.attributes) == (b"body", {"priority": 4, "key": b"\xff"})
    assert (letter.reason, letter.error, letter.origin) == ("unencodable", "no such charset", "mca 10.0.0.1")
    assert (letter.acquired, letter.failed, letter.first_ms, letter.last_ms) == (0, 0, 0, 0)
    assert await desk.count(queue) == 0
    assert (await desk.stats(queue))["dead"] == 1


async def test_oldest_dead_letters_are_removed_above_the_bound(desk: Desk) -> None:
    queue = await desk.queue(dead_letter={"max_length": 5})
    await desk.put(queue, *numbered(8))
    await desk.reject(await desk.take(queue))
    assert [d.body async for d in desk.dead(queue).matching()] == numbered(5, 3)
    stats = await desk.stats(queue)
    assert (stats["dead"], stats["dead_trimmed"], stats["dead_letters"]) == (8, 3, 5)
    assert stats["dead_overflowed"] == 3
    assert (await read_store_stats(desk.store.registry, desk.store.listing)).queues[
        queue.name
    ].dead_overflowed == 3


async def test_dead_letters_are_kept_for_the_retention(desk: Desk) -> None:
    queue = await desk.queue(dead_letter={"retention": "1ms"})
    await desk.put(queue, *numbered(3))
    await desk.reject(await desk.take(queue))

    async def gone() -> bool:
        await desk.domain.tidy(queue)
        return await desk.dead(queue).count() == 0

    await until(gone)
    stats = await desk.stats(queue)
    assert (stats["dead_trimmed"], stats["dead_overflowed"]) == (3, 0)


async def test_retention_longer_than_the_clock_keeps_everything(desk: Desk) -> None:
    queue = await desk.queue(dead_letter={"retention": "40000d"}, message_ttl="40000d")
    await desk.put(queue, *numbered(3))
    await desk.reject(await desk.take(queue, 1))
    assert await desk.reconcile(queue) == {"len": 0, "bytes": 0, "leased": 0}
    assert await desk.dead(queue).count() == 1


async def test_filters(desk: Desk) -> None:
    queue = await desk.queue()
    for i in range(10):
        reason = "injured" if i % 2 else "refused"
        await desk.bury(queue, records.encode(b"m%d" % i), reason, origin=f"tmq {i % 3}")
    letters = desk.dead(queue)
    everything = [d async for d in letters.matching()]

    async def found(**wanted: object) -> list[bytes]:
        return [d.body async for d in letters.matching(Filter(**wanted))]

    assert len(everything) == 10
    assert await found(reasons=("injured",)) == [b"m1", b"m3", b"m5", b"m7", b"m9"]
    assert await found(origin="tmq 2") == [b"m2", b"m5", b"m8"]
    assert await found(body=re.compile(rb"[45]$")) == [b"m4", b"m5"]
    assert await found(ids=(everything[3].id,)) == [b"m3"]
    assert await found(older_than_ms=3_600_000) == []
    both = (everything[8].id, "7-7", "no id", everything[2].id)
    assert await found(ids=both) == [b"m2", b"m8"]
    assert await found(ids=both, reasons=("refused",)) == [b"m2", b"m8"]
    assert await found(ids=both, reasons=("injured",)) == []
    assert (await letters.find(everything[4].id)) == everything[4]
    assert await letters.find("5-0") is None
    assert await letters.find("-") is None


async def test_scan_continues_over_pages(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(450))
    await desk.reject(await desk.take(queue))
    assert [d.body async for d in desk.dead(queue).matching()] == numbered(450)


async def test_redriven_dead_letters_keep_their_order(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(5))
    got = await desk.take(queue, 3)
    await desk.release(got, failed=True)
    await desk.reject(await desk.take(queue, 3))
    record = records.encode(b"other", {"k": 1})
    await desk.bury(queue, record, "injured")
    letters = [d async for d in desk.dead(queue).matching()]
    result = await desk.dead(queue).redrive([d.id for d in letters] + ["9-9"])
    assert (result.moved, result.missing, result.stopped) == (4, 1, None)
    again = await desk.take(queue)
    assert bodies(again) == [*numbered(2, 3), *numbered(3), b"other"]
    assert again[-1].records() == [record]
    assert [(d.acquired, d.failed) for d in again][-4:] == [(1, 0)] * 4
    stats = await desk.stats(queue)
    assert (stats["redriven"], stats["dead_letters"], stats["added"]) == (4, 0, 9)


async def test_redrive_into_another_queue(desk: Desk) -> None:
    queue, target = await desk.queue(), await desk.queue("repaired")
    await desk.put(queue, *numbered(3))
    await desk.reject(await desk.take(queue))
    ids = [d.id async for d in desk.dead(queue).matching()]
    assert (await desk.dead(queue).redrive(ids[:2], target)).moved == 2
    assert bodies(await desk.take(target)) == numbered(2)
    assert await desk.dead(queue).count() == 1
    assert (await desk.stats(queue))["redriven"] == 2


@pytest.mark.parametrize(
    ("spec", "moved", "why", "text"),
    [
        ({"max_length": 2}, 2, QueueFull, "take messages out of it, raise its maxLength"),
        ({"max_bytes": 7}, 1, QueueFull, "take messages out of it, raise its maxLength"),
        ({"max_length": 2, "overflow": "dead_letter_oldest"}, 2, QueueFull, "displaces no messages"),
        ({"paused": True}, 0, QueuePaused, "paused"),
    ],
)
async def test_redrive_stops_when_the_target_refuses(
    desk: Desk, spec: dict[str, object], moved: int, why: type, text: str
) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(4))
    await desk.reject(await desk.take(queue))
    target, _ = await desk.store.catalogue.declare("orders", QueueSpec(**spec), "test", replace=True)
    ids = [d.id async for d in desk.dead(queue).matching()]
    result = await desk.dead(queue).redrive(ids, target)
    assert (result.moved, result.missing, type(result.stopped)) == (moved, 0, why)
    assert text in str(result.stopped)
    assert [d.body async for d in desk.dead(queue).matching()] == numbered(4 - moved, moved)
    assert await desk.count(queue) == moved


async def test_moved_dead_letters_are_counted_in_the_same_step(desk: Desk) -> None:
    """Check that moved dead letters are counted atomically, so that a redrive can continue after a lost answer."""
    queue = await desk.queue()
    await desk.put(queue, *numbered(5))
    await desk.reject(await desk.take(queue))
    letters = desk.dead(queue)
    ids = [letter.id async for letter in letters.matching()]
    assert (await letters.redrive(ids[:2], run="again")).moved == 2
    assert (await letters.redrive(ids, run="again")).moved == 3
    assert (await letters.moved_by("again"), await letters.moved_by("other")) == (5, 0)
    await letters.forget_run("again")
    assert await letters.moved_by("again") == 0
    stats = await desk.stats(queue)
    assert (stats["redriven"], stats["ready"]) == (5, 5)


async def test_filter_by_latest_time_of_death(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, b"one")
    await desk.reject(await desk.take(queue))
    letters = desk.dead(queue)
    (first,) = [letter async for letter in letters.matching()]
    assert [letter async for letter in letters.matching(Filter(died_until_ms=first.died_ms))] == [first]
    assert [letter async for letter in letters.matching(Filter(died_until_ms=first.died_ms - 1))] == []


async def test_messages_that_die_during_a_redrive_are_excluded(desk: Desk) -> None:
    """Check that a redrive ends even if a consumer rejects everything."""
    queue = await desk.queue()
    letters = desk.dead(queue)
    await desk.put(queue, *numbered(5))
    await desk.reject(await desk.take(queue))
    steps = 0
    async for page in letters.pages(Filter(), 2):
        steps += 1
        assert (await letters.redrive(page)).moved == len(page)
        await desk.reject(await desk.take(queue))
    assert steps == 3
    assert sorted([d.body async for d in letters.matching()]) == numbered(5)
    assert [page async for page in desk.dead(await desk.queue("empty")).pages(Filter(), 2)] == []


async def test_filter_up_to_an_id(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(5))
    await desk.reject(await desk.take(queue))
    letters = desk.dead(queue)
    ids = [letter.id async for letter in letters.matching()]
    wanted = Filter(until=ids[2])
    assert [letter.id async for letter in letters.matching(wanted)] == ids[:3]
    assert [letter.id async for letter in letters.matching(Filter(ids=tuple(ids[1:]), until=ids[2]))] == ids[
        1:3
    ]
    assert await letters.until_now(wanted) == wanted
    assert (await letters.until_now(Filter())).until == ids[-1]


async def test_age_of_a_filter_is_fixed_when_dead_letters_are_counted(desk: Desk) -> None:
    queue = await desk.queue()
    letters = desk.dead(queue)
    await desk.bury(queue, records.encode(b"old"), "refused")
    (old,) = [letter async for letter in letters.matching()]
    gap_ms = 1000
    await until(lambda: _is_later(desk, old.died_ms + gap_ms))
    await desk.bury(queue, records.encode(b"young"), "refused")
    ids = [letter.id async for letter in letters.matching()]
    both = Filter(older_than_ms=gap_ms, ids=tuple(ids)), Filter(older_than_ms=gap_ms, until=ids[1])
    counted = [await letters.until_now(wanted) for wanted in both]
    for each in counted:
        assert [letter.body async for letter in letters.matching(each)] == [b"old"]
    await until(lambda: _all_match(letters, both[0]))
    for each in counted:
        assert [page async for page in letters.pages(each, 2)] == [[old.id]]


async def _is_later(desk: Desk, than_ms: int) -> bool:
    return await desk.store.now_ms() > than_ms


async def _all_match(letters: DeadLetters, wanted: Filter) -> bool:
    return len([letter async for letter in letters.matching(wanted)]) == await letters.count()


async def test_redrive_across_domains_or_into_a_deleted_queue_is_refused(desk: Desk) -> None:
    queue = await desk.queue()
    far, _ = await desk.store.catalogue.declare("far", QueueSpec(domain="other"), "test")
    with pytest.raises(DomainMismatch):
        await desk.dead(queue).redrive(["1-1"], far)
    near = await desk.queue("near")
    await desk.store.catalogue.delete(near)
    with pytest.raises(QueueUnknown):
        await desk.dead(queue).redrive(["1-1"], near)


async def test_purged_dead_letters_are_deleted(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(3))
    await desk.reject(await desk.take(queue))
    ids = [d.id async for d in desk.dead(queue).matching()]
    assert await desk.dead(queue).purge([*ids[:2], "9-9"]) == 2
    assert [d.body async for d in desk.dead(queue).matching()] == [b"m00002"]
    assert (await desk.stats(queue))["purged"] == 2
    assert (await desk.dead(queue).redrive(ids[:1])).missing == 1
