"""Links that are lost and set up again continue without loss (pubsub.md 4.3, 4.5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from services.store.log.replica import Replica
from services.store.model.intervals import Intervals
from tests.live import until
from tests.pubsub.cable import Cable
from tests.pubsub.conftest import Start
from tests.pubsub.live import QUICK_LINKS, SOON_SILENT, LiveEdge
from tests.pubsub.stores import (
    Neighbour,
    NewServer,
    figure,
    held,
    hold_the_same,
    linked,
    messages,
    numbered,
    send_all,
    store,
    unlinked,
)

MANY = 4_000
DOWN = "penstock_links_down"


class Pair:
    """Two stores; `two` names `one`, through a cable."""

    def __init__(self, one: LiveEdge, two: LiveEdge, cable: Cable) -> None:
        self.one, self.two, self.cable = one, two, cable

    async def break_link(self) -> None:
        self.cable.pull_out()
        await unlinked(self.one)
        await unlinked(self.two)
        await until(lambda: self.two.value(DOWN) == 1)

    async def mend_link(self) -> None:
        self.cable.plug_in()
        await linked(self.one)
        await linked(self.two)
        assert not self.two.value(DOWN)
        assert not self.one.value(DOWN)  # which dials no neighbour


@pytest.fixture
def link() -> dict[str, float]:
    """Return settings of the pair's links."""
    return QUICK_LINKS


@pytest.fixture
async def pair(new_server: NewServer, start: Start, link: dict[str, float]) -> AsyncIterator[Pair]:
    one = await start(await store(new_server), link=link)
    async with Cable(one.places["link"][1]) as cable:
        two = await start(await store(new_server), neighbours=[cable.address], link=link)
        await linked(one)
        await linked(two)
        yield Pair(one, two, cable)


async def test_link_carries_messages_sent_after_its_setup(new_server: NewServer, start: Start) -> None:
    """Check that a link carries messages sent after its setup, in both directions (4.3: the baseline)."""
    one, two = await start(await store(new_server)), await start(await store(new_server))
    await send_all(await one.client(), b"t", numbered("old of one ", 10))
    await send_all(await two.client(), b"t", numbered("old of two ", 20))
    async with Cable(one.places["link"][1]) as cable:
        link = await start(two, neighbours=[cable.address])  # in two's store
        await linked(one)
        await linked(link)
        await send_all(await one.client(), b"t", numbered("new of one ", 3))
        await send_all(await two.client(), b"t", numbered("new of two ", 3))
        await until(lambda: one.value("penstock_link_messages_total") == 3)
        await until(lambda: link.value("penstock_link_messages_total") == 3)
        assert sorted(await messages(one)) == sorted(
            numbered("old of one ", 10) + numbered("new of one ", 3) + numbered("new of two ", 3)
        )
        assert set(numbered("old of one ", 10)).isdisjoint(await messages(two))
        assert one.value("penstock_link_gaps_total") == two.value("penstock_link_gaps_total") == 0


async def test_baseline_survives_reconnection(pair: Pair, start: Start) -> None:
    """Check that the baseline survives reconnection and restarts: it is that of the first setup (4.3)."""
    await pair.break_link()
    await send_all(await pair.one.client(), b"t", numbered("while away ", 10))
    later = await start(pair.two, neighbours=[pair.one.link_address])  # it never knew the link
    await until(lambda: later.value("penstock_link_messages_total") == 10)
    await hold_the_same(pair.one, later)


async def test_baseline_limits_requests_but_not_acceptance(new_server: NewServer, start: Start) -> None:
    """Check that the baseline limits requests but not acceptance (4.3).

    FOLLOW lists the baseline as held, but such messages are accepted.
    """
    edge = await start(await store(new_server))
    neighbour = Neighbour(await edge.client("link"), b"other")
    await neighbour.say(b"HAVE 1 other inc1 other/inc1:1-9,elsewhere/inc5:3-4")
    await neighbour.hear(b"HAVE")
    words = (await neighbour.hear(b"FOLLOW")).split(b" ")
    assert {b"other/inc1:1-9", b"elsewhere/inc5:3-4"} <= set(words[4].split(b","))
    await neighbour.entry(9, b"t", b"old all the same")
    await until(lambda: edge.value("penstock_link_messages_total") == 1)
    assert await messages(edge) == [b"old all the same"]
    neighbour.client.close()
    again = await Neighbour.meet(edge, held=b"other/inc1:1-500")  # the baseline is unchanged
    assert b"other/inc1:1-9" in again.wish.split(b" ")[4].split(b",")


async def test_messages_sent_during_an_outage_are_caught_up(pair: Pair) -> None:
    """Check that thousands of messages sent during an outage on either side are caught up (4.3)."""
    await pair.break_link()
    await asyncio.gather(
        send_all(await pair.one.client(), b"t", numbered("one ", MANY)),
        send_all(await pair.two.client(), b"t", numbered("two ", MANY)),
    )
    await pair.mend_link()
    await hold_the_same(pair.one, pair.two)
    for edge in (pair.one, pair.two):
        found = await messages(edge)
        assert [m for m in found if m.startswith(b"one")] == numbered("one ", MANY)
        assert [m for m in found if m.startswith(b"two")] == numbered("two ", MANY)


async def test_broken_link_continues_where_it_was(pair: Pair) -> None:
    """Check that a link broken repeatedly under load continues where it was: each message arrives once (4.3)."""
    reader = await pair.two.client()
    await reader.subscribe(b"1", b"t")
    sending = asyncio.create_task(send_all(await pair.one.client(), b"t", numbered("m", MANY)))
    seen = 0
    while not sending.done() or seen < MANY:
        lines = await reader.lines(min(MANY - seen, MANY // 8))
        assert lines == [b"MESSAGE 1 %b\n" % m for m in numbered("m", len(lines), seen)]
        seen += len(lines)
        pair.cable.break_all()
    await sending
    await hold_the_same(pair.one, pair.two)
    await reader.nothing_more()
    assert await figure(pair.two, "gaps") == 0


async def test_log_is_not_reread_after_reconnection(pair: Pair) -> None:
    """Check that the log is not reread after reconnection before the position of an earlier BEAT (4.5)."""
    await send_all(await pair.one.client(), b"t", numbered("m" * 100, 2000))
    await hold_the_same(pair.one, pair.two)
    head = str((await Replica(pair.one.service.log).state()).head)
    ((store_id, incarnation),) = await held(pair.one)
    replica = Replica(pair.two.service.log)
    both = b"%b/%b" % (incarnation, (await replica.state()).incarnation)

    async def has_noted_all() -> bool:
        return await replica.seen(store_id, both) == head

    await until(has_noted_all)
    await pair.break_link()
    carried = pair.cable.carried
    await pair.mend_link()
    await send_all(await pair.one.client(), b"t", [b"one more"])
    await hold_the_same(pair.one, pair.two)
    assert await messages(pair.two) == [*numbered("m" * 100, 2000), b"one more"]
    assert pair.cable.carried - carried < 10_000  # not the 200,000 of the log
    assert await figure(pair.two, "skipped") == 0


async def test_unknown_position_starts_at_the_beginning(pair: Pair) -> None:
    """Check that an unknown position starts at the beginning, for a store that lost its data (4.5)."""
    await send_all(await pair.one.client(), b"t", [b"a", b"b"])
    neighbour = await Neighbour.meet(pair.one)
    await neighbour.follow(position=b"99999999999999-7")
    assert (await neighbour.hear(b"ENTRY")).endswith(b" 1 t a")
    assert (await neighbour.hear(b"ENTRY")).endswith(b" 2 t b")


async def test_position_is_reported_only_after_its_messages_were_sent(pair: Pair) -> None:
    """Check that a position is reported by BEAT only after its messages were sent on this link (4.5)."""
    neighbour = await Neighbour.meet(pair.one)
    assert await neighbour.client.line() == b"BEAT\n"  # nothing was requested
    await neighbour.follow()
    await send_all(await pair.one.client(), b"t", [b"a", b"b"])
    assert (await neighbour.hear(b"ENTRY")).endswith(b" t a")
    assert (await neighbour.hear(b"ENTRY")).endswith(b" t b")
    head = str((await Replica(pair.one.service.log).state()).head).encode()
    assert await neighbour.client.line() == b"BEAT %b\n" % head
    neighbour.client.close()
    again = await Neighbour.meet(pair.one)
    await again.follow(position=head)
    await (await pair.one.client()).publish(b"t", b"c")
    assert (await again.hear(b"ENTRY")).endswith(b" 3 t c")


async def test_new_edge_sends_messages_stored_before_its_start(new_server: NewServer, start: Start) -> None:
    """Check that a new edge sends messages stored before its start, without later ones (4.3)."""
    server = await store(new_server)
    early = await start(server)
    neighbour = await Neighbour.meet(early)
    await send_all(await early.client(), b"t", [b"a"])
    neighbour.client.close()
    late = LiveEdge(server.url, link=QUICK_LINKS | {"beat_s": 60.0, "silence_s": 150.0})
    try:
        await late.start()
        neighbour = await Neighbour.meet(late)
        await neighbour.follow()
        assert (await neighbour.hear(b"ENTRY")).endswith(b" 1 t a")
    finally:
        await late.close()


@pytest.mark.parametrize("link", [SOON_SILENT])
async def test_silent_neighbour_is_redialled(pair: Pair) -> None:
    """Check that a silent neighbour is redialled after 15 s, 2 s here (4.5)."""
    opened = pair.cable.opened
    pair.cable.pinch()
    await until(lambda: pair.two.refusals()["silent"] > 0)
    await until(lambda: pair.cable.opened > opened)
    await send_all(await pair.one.client(), b"t", [b"meanwhile"])
    pair.cable.release()
    await hold_the_same(pair.one, pair.two)
    assert await messages(pair.two) == [b"meanwhile"]


async def test_direct_link_beside_a_slower_path_loses_nothing(new_server: NewServer, start: Start) -> None:
    """Check that a direct link beside a slower path loses nothing (4.3, 4.5).

    Messages in its baseline still arrive over the slower path.
    """
    first, middle = await start(await store(new_server)), await start(await store(new_server))
    async with Cable(first.places["link"][1]) as near, Cable(middle.places["link"][1]) as far:
        patient = QUICK_LINKS | {"silence_s": 30.0}
        between = await start(middle, neighbours=[near.address])
        last = await start(await store(new_server), neighbours=[far.address], link=patient)
        await linked(between)
        await linked(last)
        await send_all(await first.client(), b"t", numbered("m", 100))
        await hold_the_same(first, middle, last)
        far.pinch()
        await send_all(await first.client(), b"t", numbered("m", 100, 100))
        await hold_the_same(first, middle)
        direct = await start(last, neighbours=[first.link_address])
        await linked(direct)
        await send_all(await first.client(), b"t", numbered("m", 100, 200))
        await until(lambda: direct.value("penstock_link_messages_total") >= 100)
        (origin,) = await held(first)
        assert (await held(last))[origin] == Intervals.of([(1, 100), (201, 300)])
        far.release()
        await hold_the_same(first, middle, last)
        assert sorted(await messages(last)) == sorted(numbered("m", 300))
