"""Notes stay with messages until these are settled, and with dead letters (docs/store.md, rqp_cast.md 2.3, 4.2)."""

import asyncio

import pytest

from services.store import Delivery, Queue, QueueSpec
from services.store.model.errors import LeaseLost, QueueUnknown
from tests.servers import Client
from tests.store.desk import Desk, bodies, numbered
from tests.store.lane import Lane, begin
from tests.store.pipeline.test_replays import Answers, put, take
from tests.store.pipeline.test_returns import singles

NOTE = "id=4711;from=10.0.0.7;to=10.0.0.8:11312,1"


async def noted(desk: Desk, count: int = 5) -> tuple[Queue, list[Delivery]]:
    """Publish and lease messages, one by one and together; the third has a note."""
    queue = await desk.queue()
    await desk.put(queue, *numbered(count))
    got = singles(await desk.take(queue))
    await desk.note(got[2], NOTE)
    return queue, got


def notes(deliveries: list[Delivery]) -> list[str]:
    return [d.note for d in singles(deliveries)]


async def test_message_without_a_note(desk: Desk) -> None:
    queue, got = await noted(desk)
    assert notes(got) == [""] * 5
    await desk.release(got, failed=True)
    again = await desk.take(queue)
    assert notes(again) == ["", "", NOTE, "", ""]
    assert [(d.acquired, d.failed) for d in again] == [(2, 1)] * 5


async def test_note_survives_returns(desk: Desk) -> None:
    queue, got = await noted(desk)
    await desk.settle([got[0], got[1], *got[3:]])
    (mine,) = got[2:3]
    for number, how in enumerate([{}, {"failed": True, "error": "no answer; at all"}, {"to_end": True}, {}]):
        await desk.release([mine], **how)
        (peeked,) = await desk.domain.peek(queue, 1)
        assert peeked.note == NOTE
        (mine,) = await desk.take(queue)
        assert (mine.note, mine.acquired, bodies([mine])) == (NOTE, number + 2, [b"m00002"])
    await desk.settle([mine])
    assert await desk.domain.link.call("EXISTS", queue.keys[4]) == 0, "settled: the note has gone with it"


async def test_last_note_counts_and_empty_note_removes_it(desk: Desk) -> None:
    queue, got = await noted(desk)
    await desk.note(got[2], "2;x")
    await desk.release(got[2:3])
    (again,) = await desk.take(queue)
    assert again.note == "2;x"
    await desk.note(again, "")
    await desk.release([again])
    (again,) = await desk.take(queue)
    assert again.note == ""


async def test_note_for_all_messages_of_a_delivery(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(3))
    (whole,) = await desk.take(queue)
    await desk.note(whole, NOTE)
    await desk.release([whole])
    assert notes(await desk.take(queue)) == [NOTE] * 3


async def test_messages_with_notes_settle_and_count_as_others(desk: Desk) -> None:
    queue, got = await noted(desk)
    await desk.settle(got)
    stats = await desk.stats(queue)
    assert (stats["acked"], stats["ready"], stats["in_flight"], stats["bytes"], stats["leases"]) == (
        5,
        0,
        0,
        0,
        0,
    )
    assert (await desk.reconcile(queue)) == {"len": 0, "bytes": 0, "leased": 0}


async def test_dead_letter_keeps_the_note(desk: Desk) -> None:
    queue, got = await noted(desk)
    await desk.reject(got, "unconfirmed")
    letters = [letter async for letter in desk.dead(queue).matching()]
    assert [letter.note for letter in letters] == ["", "", NOTE, "", ""]


async def test_dead_letter_by_delivery_limit_keeps_the_note(desk: Desk) -> None:
    queue = await desk.queue(max_deliveries=1)
    await desk.put(queue, b"x")
    got = await desk.take(queue)
    await desk.note(got[0], NOTE)
    await desk.release(got, failed=True)
    (letter,) = [letter async for letter in desk.dead(queue).matching()]
    assert (letter.reason, letter.note) == ("max_deliveries", NOTE)


async def test_upkeep_keeps_notes(desk: Desk) -> None:
    """Check that a message examined together with an expired one keeps its note."""
    queue = await desk.queue()
    await desk.put(queue, b"old")
    await asyncio.sleep(0.3)
    await desk.put(queue, b"new")
    old, new = singles(await desk.take(queue))
    await desk.note(new, NOTE)
    await desk.release([old], to_end=True)
    await desk.release([new], to_end=True)
    await desk.store.catalogue.declare("orders", QueueSpec(message_ttl="250ms"), "test", replace=True)
    await desk.domain.tidy(queue)
    assert (await desk.stats(queue))["expired"] == 1
    await desk.store.catalogue.declare("orders", QueueSpec(), "test", replace=True)
    (again,) = await desk.take(queue)
    assert (again.note, again.acquired, bodies([again])) == (NOTE, 2, [b"new"])


async def test_lost_lease_writes_no_note(desk: Desk) -> None:
    queue, got = await noted(desk)
    await desk.release(got[:1])
    async with desk.another() as other:
        (theirs,) = await other.take(queue)
        with pytest.raises(LeaseLost):
            await desk.note(got[0], "mine")
        with pytest.raises(LeaseLost):
            await desk.note(theirs, "mine")
        await other.note(theirs, "theirs")
        await other.release([theirs])
    assert (await desk.stats(queue))["fenced"] == 2
    (again,) = await desk.take(queue, 1)
    assert again.note == "theirs"
    await desk.store.catalogue.delete(queue)
    with pytest.raises(QueueUnknown):
        await desk.note(again, "late")


async def test_note_precedes_later_operations(desk: Desk) -> None:
    """Check that a note is written before a return of its message in the same call."""
    queue = await desk.queue()
    await desk.put(queue, b"x")
    got = await desk.take(queue)
    asked = [desk.noting(got[0], NOTE), desk.releasing(got, to_end=True)]
    await asyncio.gather(*asked)
    assert notes(await desk.take(queue)) == [NOTE]


@pytest.mark.parametrize("note", ["a b", "a\n", "ä", "x" * 201, "\0", "\udcff"])
async def test_invalid_note_is_refused(desk: Desk, note: str) -> None:
    _, got = await noted(desk)
    with pytest.raises(ValueError, match="up to 200 visible ASCII characters"):
        await desk.note(got[0], note)
    await desk.note(got[0], "!" * 100 + "~" * 100)


def begun(client: Client) -> tuple[Lane, Queue]:
    """Publish three messages and take them."""
    queue = Queue("orders", "q1", "main", "test", QueueSpec(ack_level="fsync"))
    begin(client, queue)
    lane = Lane(client, "one")
    put(lane, queue, *numbered(3))
    return lane, queue


def test_note_survives_the_death_of_its_process(client: Client) -> None:
    """Check that a note survives its process, and that a repeated call adds no second note."""
    lane, queue = begun(client)
    got = take(lane, queue)
    answers = Answers()
    lane.messages.note(lane.source, got[1], NOTE, answers)
    assert lane.send() == lane.again() == [[1, 0]]
    assert answers == [None]
    lane.die()
    heir = Lane(client, "two")
    assert heir.fence() == ["one"]
    assert heir.sweep("one", [queue]) == (3, 0, 0)
    again = take(heir, queue)
    assert [(d.note, d.failed) for d in again] == [("", 1), (NOTE, 1), ("", 1)]
    repeated = heir.again()  # the take: its messages are read again, with their notes
    assert [value for value in repeated[0] if value == b"2 1 " + NOTE.encode()]


def test_records_of_older_versions_without_notes_are_read(client: Client) -> None:
    """Check that records of older versions are read, even if a returned message's error looks like a note."""
    lane, queue = begun(client)
    lane.messages.release(lane.source, take(lane, queue), failed=True, error=";not a note")
    lane.send()
    kept = {position: client.call("HGET", queue.keys[4], position) for position in (b"32", b"33", b"34")}
    for position, record in kept.items():
        lot, acquired, failed, _, _, error = record.split(b" ", 5)
        assert (lot, acquired, failed, error) == (b"0", b"1", b"1", b";not a note")
        client.call("HSET", queue.keys[4], position, b"0 4 2 7 8 ;not a note")
    again = take(lane, queue)
    assert [(d.note, d.acquired, d.failed) for d in again] == [("", 5, 2)] * 3
    for position in kept:
        assert client.call("HGET", queue.keys[4], position).endswith(b" ;not a note")
