"""Idempotent publishes: by identifier or journal number (docs/store.md, rqp_cast.md 5.4, sysv.md)."""

import asyncio
from typing import Any

import pytest

from services.store import CommitPart, Outcome, QueueSpec, StoreError
from services.store.model import records
from services.store.model.errors import (
    BatchDiffers,
    MessageTooLarge,
    QueueFull,
    QueuePaused,
    QueueReserved,
    QueueUnknown,
    ReservationLost,
)
from services.store.model.identities import JournalNumber, TransactionId
from tests.servers import Client
from tests.store.desk import Desk, bodies, encode, numbered, until
from tests.store.pipeline.test_notes import begun
from tests.store.pipeline.test_replays import Answers

STORED, AGAIN = Outcome.STORED, Outcome.AGAIN


async def test_identifier_is_stored_once(desk: Desk) -> None:
    queue = await desk.queue()
    assert await desk.publish_once("cast 1", queue, b"a") is STORED
    assert await desk.publish_once("cast 1", queue, b"a") is AGAIN
    async with desk.another() as other:
        assert await other.publish_once("cast 1", queue, b"a") is AGAIN
        assert await other.publish_once("cast 2", queue, b"b") is STORED
    assert await desk.drain(queue) == [b"a", b"b"]
    assert await desk.publish_once("cast 1", queue, b"a") is AGAIN, "also when it has been taken out"
    assert (await desk.stats(queue))["duplicates"] == 3


async def test_other_message_with_the_same_identifier_is_refused(desk: Desk) -> None:
    """Check that other content with the same address and id is refused (rqp_cast.md 2.3)."""
    queue = await desk.queue()
    assert await desk.publish_once("cast 1", queue, b"a", digest="one") is STORED
    assert await desk.publish_once("cast 1", queue, b"a", digest="one") is AGAIN
    with pytest.raises(BatchDiffers):
        await desk.publish_once("cast 1", queue, b"b", digest="two")
    assert await desk.drain(queue) == [b"a"]


async def test_identifier_expires(desk: Desk) -> None:
    queue = await desk.queue()
    assert await desk.publish_once("cast 1", queue, b"a", keep_ms=1) is STORED

    async def stored() -> bool:
        return await desk.publish_once("cast 1", queue, b"a") is STORED

    await until(stored)


async def test_holder_publishes_and_duplicates_need_no_reservation(desk: Desk) -> None:
    """Check that an insertion needs the reservation, except for a duplicate (rqp_cast.md 3.2)."""
    queue = await desk.queue()
    with pytest.raises(ReservationLost):
        await desk.publish_once("cast 1", queue, b"a", holder="cast 7")
    fence = await desk.domain.claims.reserve(queue, "cast 7", 60_000)
    for holder, wanted in (("", QueueReserved), ("?cast 8", QueueReserved), ("cast 8", ReservationLost)):
        with pytest.raises(wanted):
            await desk.publish_once("cast 1", queue, b"a", holder=holder)
    assert await desk.publish_once("cast 1", queue, b"a", holder="cast 7") is STORED
    assert await desk.publish_once("cast 2", queue, b"b", holder="?cast 7") is STORED
    await desk.domain.claims.release_reservation(queue, "cast 7", fence)
    assert await desk.publish_once("cast 1", queue, b"a", holder="cast 7") is AGAIN


async def test_commit_part_may_have_a_holder(desk: Desk) -> None:
    queue, other = await desk.queue(), await desk.queue("other")
    await desk.domain.claims.reserve(queue, "cast 7", 60_000)
    with pytest.raises(QueueReserved):
        await desk.commit(
            "t1", CommitPart(queue, [], encode(b"a"), "t"), CommitPart(other, [], encode(b"b"), "t")
        )
    await desk.commit(
        "t1", CommitPart(queue, [], encode(b"a"), "t", "cast 7"), CommitPart(other, [], encode(b"b"), "t")
    )
    assert [await desk.count(one) for one in (queue, other)] == [1, 1]


REFUSED: list[tuple[dict[str, Any], type[StoreError]]] = [
    ({"max_length": 1}, QueueFull),
    ({"paused": True}, QueuePaused),
    ({"remote": {"protocol": "rqp-cast", "key": 1, "maxMessageBytes": 3}}, MessageTooLarge),
]


@pytest.mark.parametrize(("spec", "wanted"), REFUSED)
async def test_refused_publish_can_be_retried(
    desk: Desk, spec: dict[str, Any], wanted: type[StoreError]
) -> None:
    """Check that a refused publish can be retried with the same identifier or number."""
    queue = await desk.queue()
    await desk.put(queue, b"in the way")
    await desk.store.catalogue.declare("orders", QueueSpec(**spec), "test", replace=True)
    with pytest.raises(wanted):
        await desk.publish_once("cast 1", queue, b"once")
    with pytest.raises(wanted):
        await desk.numbering("a", 1, queue, b"numbered")
    await desk.store.catalogue.declare("orders", QueueSpec(), "test", replace=True)
    assert await desk.publish_once("cast 1", queue, b"once") is STORED
    assert await desk.numbering("a", 1, queue, b"numbered") is STORED
    assert await desk.drain(queue) == [b"in the way", b"once", b"numbered"]


# journals


async def test_lower_journal_number_does_nothing(desk: Desk) -> None:
    queue = await desk.queue()
    for journal, number, wanted in [
        ("a", 1, STORED),
        ("a", 1, AGAIN),
        ("b", 1, STORED),
        ("a", 5, STORED),
        ("a", 3, AGAIN),
        ("a", 1 << 53, STORED),
        ("a", (1 << 53) - 1, AGAIN),
    ]:
        assert await desk.numbering(journal, number, queue, b"%s %d" % (journal.encode(), number)) is wanted
    assert await desk.drain(queue) == [b"a 1", b"b 1", b"a 5", b"a %d" % (1 << 53)]
    assert (await desk.stats(queue))["duplicates"] == 3


async def test_journal_never_expires(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.numbering("host 1", 7, queue, b"x")
    key = desk.domain.keys.journal("host 1")
    assert await desk.domain.link.call("PTTL", key) == -1
    await desk.store.catalogue.delete(queue)
    assert await desk.numbering("host 1", 7, queue, b"x") is AGAIN, "regardless of the queue's state"
    with pytest.raises(QueueUnknown):
        await desk.numbering("host 1", 8, queue, b"x")


async def test_concurrent_journal_numbers_are_applied_in_order(desk: Desk) -> None:
    queue, other = await desk.queue(), await desk.queue("other")
    asked = [
        desk.numbering("a", number, queue if number % 3 else other, b"%d" % number) for number in range(1, 40)
    ]
    assert set(await asyncio.gather(*asked)) == {STORED}
    assert await desk.drain(queue) == [b"%d" % n for n in range(1, 40) if n % 3]
    assert await desk.drain(other) == [b"%d" % n for n in range(1, 40) if not n % 3]


async def test_unreadable_journal_entry_becomes_a_dead_letter(desk: Desk) -> None:
    queue = await desk.queue()
    how = {"reason": "injured", "error": "no t_msg"}
    assert await desk.numbering("a", 1, queue, b"bad", **how) is STORED
    assert await desk.numbering("a", 1, queue, b"bad", **how) is AGAIN
    (letter,) = [letter async for letter in desk.dead(queue).matching()]
    assert (letter.reason, letter.error, letter.body, letter.origin) == (
        "injured",
        "no t_msg",
        b"bad",
        "sysv",
    )
    assert await desk.count(queue) == 0


@pytest.mark.parametrize("number", [0, -1, (1 << 53) + 1])
async def test_invalid_journal_number_is_refused(desk: Desk, number: int) -> None:
    queue = await desk.queue()
    with pytest.raises(ValueError, match="journal numbers"):
        desk.numbering("a", number, queue, b"x")


async def test_reserved_queue_refuses_journal_numbers(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.domain.claims.reserve(queue, "mca 7", 60_000)
    with pytest.raises(QueueReserved):
        await desk.numbering("a", 1, queue, b"x")


def test_lost_reply_is_repeated(client: Client) -> None:
    """Check that a call repeated under its sequence number still has the outcome STORED."""
    lane, queue = begun(client)
    answers = Answers()
    (record,) = encode(b"x")
    lane.idempotent.publish(lane.source, TransactionId("cast 1", 60_000), queue, record, "t", answers)
    lane.idempotent.publish(lane.source, JournalNumber("a", 1), queue, record, "t", answers)
    assert lane.send() == lane.again() == [[b"DONE"], [b"DONE"]]
    lane.idempotent.publish(lane.source, TransactionId("cast 1", 60_000), queue, record, "t", answers)
    lane.idempotent.publish(lane.source, JournalNumber("a", 1), queue, record, "t", answers)
    assert lane.send() == [[b"AGAIN"], [b"AGAIN"]]
    assert answers == [STORED, STORED, AGAIN, AGAIN]
    lane.messages.count(lane.source, queue, answers)
    lane.send()
    assert answers[-1] == 5


async def test_publish_once_keeps_attributes_and_order(desk: Desk) -> None:
    queue = await desk.queue()
    answers: list[Any] = []
    record = records.encode(b"1", {"type": 3})
    first = desk.publishing(queue, b"0")
    desk.pipe.idempotent.publish(desk.source, JournalNumber("a", 1), queue, record, "sysv", answers.append)
    last = desk.publishing(queue, b"2")
    assert (await first, await last, answers) == ([], [], [STORED])
    got = await desk.take(queue)
    assert bodies(got) == [b"0", b"1", b"2"]
    found = [records.decode(one) for d in got for one in d.records()]
    assert found[1].attributes == {"type": 3}


async def test_full_queue_refuses_one_of_many(desk: Desk) -> None:
    queue = await desk.queue(max_length=2)
    asked = [desk.numbering("a", number, queue, body) for number, body in enumerate(numbered(3), 1)]
    results = await asyncio.gather(*asked, return_exceptions=True)
    assert results[:2] == [STORED, STORED]
    assert isinstance(results[2], QueueFull)
