"""Reservations: exclusive rights to publish to a queue (rqp_mca.md 2.2, 2.3; rqp_cast.md 3.2)."""

import pytest

from services.store import QueueSpec, StoreError
from services.store.model.errors import (
    QueueFull,
    QueuePaused,
    QueueReserved,
    QueueServed,
    QueueUnknown,
    ReservationLost,
    StoreEvicts,
)
from services.store.pipeline.claims import Asked
from tests.servers import Server
from tests.store.desk import Desk, numbered, until
from tests.store.pipeline.test_publish import refused


async def test_only_the_holder_of_a_reservation_may_publish(desk: Desk) -> None:
    queue = await desk.queue()
    fence = await desk.domain.claims.reserve(queue, "mca 7", 60_000)
    assert fence == 1
    assert refused(await desk.publish(queue, b"x")) == ([0], {QueueReserved})
    assert refused(await desk.publish(queue, b"x", holder="mca 8")) == ([0], {ReservationLost})
    assert await desk.publish(queue, b"x", holder="mca 7") == []
    assert not await desk.domain.claims.release_reservation(queue, "mca 8", fence)
    assert not await desk.domain.claims.release_reservation(queue, "mca 7", fence + 1)
    assert await desk.domain.claims.release_reservation(queue, "mca 7", fence)
    assert refused(await desk.publish(queue, b"x", holder="mca 7")) == ([0], {ReservationLost})
    assert await desk.publish(queue, b"y") == []
    assert desk.refusals == {"queue_reserved": 1, "reservation_lost": 2}


async def test_unreserved_publisher_is_refused_by_other_reservations(desk: Desk) -> None:
    """Check this for `exclusive: false` and for MSG_DATA to a queue without reservation (rqp_mca.md 2.3)."""
    queue = await desk.queue()
    assert await desk.publish(queue, b"x", holder="?mca 7") == []
    await desk.domain.claims.reserve(queue, "mca 7", 60_000)
    assert await desk.publish(queue, b"x", holder="?mca 7") == []
    assert refused(await desk.publish(queue, b"x", holder="?mca 8")) == ([0], {QueueReserved})


async def test_refusal_names_the_holder_and_the_time_left(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.domain.claims.reserve(queue, "mca edge 7", 60_000)
    text = r"queue 'orders' is reserved by mca edge 7 for (60\.0|59\.\d) s more"
    with pytest.raises(QueueReserved, match=text):
        await desk.domain.claims.reserve(queue, "mca 8", 60_000)
    with pytest.raises(QueueReserved, match=text):
        await desk.domain.claims.available(queue, "mca 8")
    stats = await desk.stats(queue)
    assert stats["reserved_by"] == "mca edge 7"
    assert 50_000 < stats["reserved_for_ms"] <= 60_000


async def test_renewal_keeps_the_fencing_token(desk: Desk) -> None:
    queue = await desk.queue()
    assert [await desk.domain.claims.reserve(queue, "mca 7", ms) for ms in (60_000, 90_000, 1)] == [1, 1, 1]

    async def free() -> bool:
        return (await desk.stats(queue))["reserved_by"] == ""

    await until(free)
    assert await desk.domain.claims.reserve(queue, "mca 7", 60_000) == 2, (
        "too late: others may have had it meanwhile"
    )


async def test_reservation_expires_and_the_next_gets_another_token(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.domain.claims.reserve(queue, "mca 7", 1)

    async def second() -> int:
        try:
            return await desk.domain.claims.reserve(queue, "mca 8", 60_000)
        except QueueReserved:
            return 0

    assert await until(second) == 2
    assert not await desk.domain.claims.release_reservation(queue, "mca 7", 1)
    assert refused(await desk.publish(queue, b"x", holder="mca 7")) == ([0], {ReservationLost})


async def test_holder_releases_a_reservation_with_lost_reply(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.domain.claims.reserve(queue, "mca 7", 60_000)
    assert not await desk.domain.claims.release_reservation(queue, "mca 8", 0)
    assert await desk.domain.claims.release_reservation(queue, "mca 7", 0)
    assert await desk.domain.claims.reserve(queue, "mca 8", 60_000) == 2


async def test_reservations_hold_for_all_processes(desk: Desk) -> None:
    """Check that a reservation in the store holds for all processes (rqp_mca.md 2.3)."""
    queue = await desk.queue()
    await desk.domain.claims.reserve(queue, "mca 7", 60_000)
    async with desk.another() as other:
        with pytest.raises(QueueReserved):
            await other.domain.claims.reserve(queue, "mca 8", 60_000)
        assert await other.publish(queue, b"x", holder="mca 7") == []


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"paused": True}, QueuePaused),
        ({"max_length": 3}, QueueFull),
        ({"max_bytes": 18}, QueueFull),
        ({"max_length": 4, "max_bytes": 19}, None),
        ({"max_length": 3, "overflow": "dead_letter_oldest"}, None),
        ({"max_length": 2, "overflow": "dead_letter_oldest"}, QueueFull),
        ({"max_bytes": 18, "overflow": "dead_letter_oldest"}, None),
    ],
)
async def test_queue_availability(
    desk: Desk, spec: dict[str, object], wanted: type[StoreError] | None
) -> None:
    """Check availability: the queue exists, is not paused and not full, with leased messages (rqp_mca.md 2.2)."""
    queue = await desk.queue()
    await desk.put(queue, *numbered(3))
    await desk.take(queue, 2)
    await desk.store.catalogue.declare("orders", QueueSpec(**spec), "test", replace=True)
    if wanted is None:
        await desk.domain.claims.available(queue, "mca 7")
    else:
        with pytest.raises(wanted):
            await desk.domain.claims.available(queue, "mca 7")


async def test_leased_messages_make_no_room(desk: Desk) -> None:
    queue = await desk.queue(max_bytes=18, overflow="dead_letter_oldest")
    await desk.put(queue, *numbered(3))
    await desk.take(queue, 3)
    with pytest.raises(QueueFull):
        await desk.domain.claims.available(queue, "mca 7")


async def test_paused_queue_cannot_be_reserved(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.domain.claims.reserve(queue, "mca 7", 60_000)
    await desk.domain.claims.available(queue, "mca 7")
    await desk.store.catalogue.declare("orders", QueueSpec(paused=True), "test", replace=True)
    with pytest.raises(QueuePaused):
        await desk.domain.claims.reserve(queue, "mca 8", 60_000)
    assert await desk.domain.claims.reserve(queue, "mca 7", 60_000) == 1, "the holder keeps it"
    assert await desk.domain.claims.release_reservation(queue, "mca 7", 1)
    with pytest.raises(QueuePaused):
        await desk.domain.claims.reserve(queue, "mca 7", 60_000)


async def test_deleted_queue_is_neither_available_nor_reserved(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.store.catalogue.delete(queue)
    with pytest.raises(QueueUnknown, match="'orders'"):
        await desk.domain.claims.available(queue, "mca 7")
    with pytest.raises(QueueUnknown, match="'orders'"):
        await desk.domain.claims.reserve(queue, "mca 7", 60_000)


async def test_full_store_has_no_available_queue(desk: Desk, server: Server) -> None:
    queue = await desk.queue()

    async def refusal() -> type[StoreError] | None:
        try:
            await desk.domain.claims.available(queue, "mca 7")
        except StoreError as error:
            return type(error)
        return None

    with server.configured(maxmemory_policy="allkeys-lru"):
        assert await until(refusal) is StoreEvicts


@pytest.mark.parametrize("name", ["", "?mca 7"])
async def test_invalid_holder_names_are_refused(desk: Desk, name: str) -> None:
    queue = await desk.queue()
    with pytest.raises(ValueError, match="cannot hold a reservation"):
        await desk.domain.claims.reserve(queue, name, 60_000)


async def test_answered_question_gets_no_second_reservation(desk: Desk) -> None:
    """Check that an answered question gets no second reservation from another process (rqp_cast.md 3.2)."""
    queue, domain = await desk.queue(), desk.domain
    fence = await domain.claims.reserve(queue, "cast a 1", 60_000, Asked("1.2.3.4", 50, "cast a "))
    assert await domain.claims.release_reservation(queue, "cast a 1", fence, "1.2.3.4")
    with pytest.raises(QueueServed, match="cast a 1 has already answered this question with queue 'orders'"):
        await domain.claims.reserve(queue, "cast b 1", 60_000, Asked("1.2.3.4", 60_000, "cast b "))
    for holder, asked in (
        ("cast a 2", Asked("1.2.3.4", 60_000, "cast a ")),
        ("cast b 2", Asked("1.2.3.5", 60_000, "cast b ")),
        ("cast b 3", Asked("1.2.3.4", -1, "cast b ")),
        ("mca 7", None),
    ):
        fence = await domain.claims.reserve(queue, holder, 60_000, asked)
        assert await domain.claims.release_reservation(queue, holder, fence)
