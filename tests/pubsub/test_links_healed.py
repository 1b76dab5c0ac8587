"""What links come back from: neighbours that forgot, servers without a store, restored logs, hostile numbers.

pubsub.md 4.3-4.5, 4.7; what a neighbour has no more is not held: decision 9.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from protos.pubsub import MAX_INTERVALS
from services.store.intervals import MAX_NUMBER
from services.store.replica import Replica
from tests.live import until
from tests.pubsub.cable import Cable
from tests.pubsub.client import Client
from tests.pubsub.conftest import Start
from tests.pubsub.live import QUICK_LINKS, LiveEdge
from tests.pubsub.stores import (
    Neighbour,
    NewServer,
    figure,
    held,
    linked,
    messages,
    numbered,
    send_all,
    store,
    unlinked,
)
from tests.pubsub.test_links_stores import KIB, SMALL_LOG, copy_of, restore, stores_again
from tests.servers import Server

SCATTERED = 1000  # pieces that the numbers of one origin may come in
HOUR_MS = 3_600_000
SLOW_BEATS = {**QUICK_LINKS, "beat_s": 2.0, "silence_s": 15.0}  # the store is back before they miss it
PROMPT_S = 2.0  # what a store that has not much to do needs at most, on a slow machine
LIST_ITEM = 1500  # intervals of 33 octets that go into one line of a list


async def has_all(edge: LiveEdge, wanted: list[bytes]) -> None:
    """Every one of them, once."""

    async def has() -> bool:
        found = [message for message in await messages(edge) if message in expected]
        assert len(found) == len(set(found))
        return len(found) == len(expected)

    expected = set(wanted)
    await until(has)


def big(number: int) -> list[bytes]:
    return [b"%d %b" % (i, KIB) for i in range(number)]


def is_trimmed(edge: LiveEdge, below: int) -> Callable[[], object]:
    async def is_short() -> bool:
        return len(await messages(edge)) < below

    return is_short


@asynccontextmanager
async def edge_over(cable: Cable) -> AsyncIterator[LiveEdge]:
    """An edge whose way to its store can be cut."""
    edge = await LiveEdge(f"redis://{cable.address}").start()
    try:
        yield edge
        edge.check_no_fault_of_ours()
    finally:
        await edge.close()


# what one neighbour has no more, another brings (decision 9)


async def test_a_restored_store_gets_back_what_any_neighbour_still_has(
    new_server: NewServer, start: Start, tmp_path: Path
) -> None:
    """4.4, 4.5: though the first that it spoke to after that had trimmed most of it."""
    forgetful = await start(await store(new_server), log=SMALL_LOG)
    keeper = await start(await store(new_server), neighbours=[forgetful.link_address])
    server = await store(new_server)
    async with Cable(keeper.places["link"][1]) as cable:
        restored = await start(server, neighbours=[forgetful.link_address, cable.address])
        for edge in (forgetful, keeper, restored):
            await linked(edge, 2)
        copy = await asyncio.to_thread(copy_of, server, tmp_path)
        await until(restored.is_ready)
        await stores_again(restored)
        for edge in (forgetful, keeper, restored):
            await linked(edge, 2)
        await send_all(await restored.client(), b"t", big(300))
        await has_all(keeper, big(300))
        await until(is_trimmed(forgetful, 100))
        cable.pull_out()
        await asyncio.to_thread(restore, server, copy)
        await until(restored.is_ready)
        await stores_again(restored)

        async def told_of_gaps() -> bool:
            return await figure(restored, "gaps") > 0

        await until(told_of_gaps)
        cable.plug_in()
        await has_all(restored, big(300))
    assert await figure(restored, "gaps") == 0


async def test_first_who_has_trimmed_then_who_has_not(new_server: NewServer, start: Start) -> None:
    """4.5: whichever neighbour speaks first, in the end all is here, and nothing counts as lost."""
    keeper = await start(await store(new_server))
    forgetful = await start(await store(new_server), neighbours=[keeper.link_address], log=SMALL_LOG)
    async with (
        Cable(keeper.places["link"][1]) as to_keeper,
        Cable(forgetful.places["link"][1]) as to_forgetful,
    ):
        late = await start(await store(new_server), neighbours=[to_keeper.address, to_forgetful.address])
        for edge in (keeper, forgetful, late):
            await linked(edge, 2)
        to_keeper.pull_out()
        to_forgetful.pull_out()
        await unlinked(late)
        await send_all(await keeper.client(), b"t", big(300))
        await until(lambda: forgetful.value("penstock_link_messages_total") == 300)
        await until(is_trimmed(forgetful, 100))
        to_forgetful.plug_in()
        await until(lambda: late.value("penstock_link_gaps_total") > 0)
        assert await figure(late, "gaps") > 0
        to_keeper.plug_in()
        await has_all(late, big(300))
    assert len(await messages(late)) == 300
    assert await figure(late, "gaps") == 0


async def test_a_gap_over_everything_shuts_nobody_out(new_server: NewServer, start: Start) -> None:
    """4.5: one line about all numbers that a third store will ever give out hides none of them."""
    honest = await start(await store(new_server))
    edge = await start(await store(new_server), neighbours=[honest.link_address])
    behind = await start(await store(new_server), neighbours=[edge.link_address])
    await linked(edge, 2)
    await linked(behind)
    await send_all(await honest.client(), b"t", [b"before"])
    await has_all(behind, [b"before"])
    ((store_id, incarnation),) = await held(honest)
    liar = await Neighbour.meet(edge, b"liar")
    await liar.say(b"GAP %b %b 1 %d" % (store_id, incarnation, MAX_NUMBER))
    await until(lambda: edge.value("penstock_link_gaps_total") > 0)
    await send_all(await honest.client(), b"t", numbered("after ", 10))
    for each in (edge, behind):
        await has_all(each, [b"before", *numbered("after ", 10)])


# stores that were restored


async def test_a_store_restored_to_before_its_link_gets_its_own_back(
    new_server: NewServer, start: Start, tmp_path: Path
) -> None:
    """4.3, 4.4: for it the link is new then, but what it sent itself never counts as there before."""
    one, server = await start(await store(new_server)), await store(new_server)
    two = await start(server)
    await send_all(await two.client(), b"t", numbered("before ", 5))
    copy = await asyncio.to_thread(copy_of, server, tmp_path)
    await until(two.is_ready)
    linking = await start(server, neighbours=[one.link_address])
    await linked(one)
    await linked(linking)
    await stores_again(two)
    await send_all(await two.client(), b"t", numbered("lost ", 10))
    await has_all(one, numbered("lost ", 10))
    await asyncio.to_thread(restore, server, copy)
    await until(two.is_ready)
    await stores_again(two)
    await has_all(two, [*numbered("before ", 5), *numbered("lost ", 10)])
    await send_all(await two.client(), b"t", numbered("after ", 3))
    await has_all(one, [*numbered("lost ", 10), *numbered("after ", 3)])


class AnHourBack:
    """A store whose clock was an hour ahead for a while, and whose data is then restored to before that."""

    def __init__(self, server: Server, edge: LiveEdge) -> None:
        self.server = server
        self.edge = edge
        self.copy = Path()

    async def begin(self, folder: Path) -> None:
        """The places of the log are an hour ahead from now on."""
        await stores_again(self.edge)
        self.copy = await asyncio.to_thread(copy_of, self.server, folder)
        await until(self.edge.is_ready)
        era = round(time.time() * 1000) + HOUR_MS
        key = self.edge.service.log.keys.log[1]
        await asyncio.to_thread(self.server.call, "HSET", key, "era", era, "server", "another one")
        await stores_again(self.edge)

    async def restore(self) -> None:
        """And what is stored now has places before those."""
        await asyncio.to_thread(restore, self.server, self.copy)
        await until(self.edge.is_ready)
        await stores_again(self.edge)


async def test_subscribers_of_a_log_that_went_back_are_served_again(
    new_server: NewServer, start: Start, tmp_path: Path
) -> None:
    """3.1, 4.2: whoever subscribed before, whoever subscribes now, and both in the order of the log."""
    server = await store(new_server)
    edge = await start(server)
    back = AnHourBack(server, edge)
    await back.begin(tmp_path)
    old = await edge.client()
    await old.subscribe(b"1", b"u")
    await (await edge.client()).publish(b"u", b"before")
    assert await old.line() == b"MESSAGE 1 before\n"
    await back.restore()
    new = await edge.client()
    await new.subscribe(b"2", b"u")
    sender = await edge.client()
    for message in numbered("after ", 3):
        await sender.publish(b"u", message)
    assert await old.lines(3) == [b"MESSAGE 1 %b\n" % message for message in numbered("after ", 3)]
    assert await new.lines(3) == [b"MESSAGE 2 %b\n" % message for message in numbered("after ", 3)]
    assert edge.log.events("log_went_back")


async def test_links_to_a_log_that_went_back_go_on(
    new_server: NewServer, start: Start, tmp_path: Path
) -> None:
    """4.4, 4.5: places that were told before mean nothing any more."""
    server = await store(new_server)
    two = await start(server)
    one = await start(await store(new_server), neighbours=[two.link_address])
    await linked(one)
    await linked(two)
    back = AnHourBack(server, two)
    await back.begin(tmp_path)
    await linked(one)
    await send_all(await two.client(), b"t", numbered("before ", 5))
    await has_all(one, numbered("before ", 5))
    await back.restore()
    await send_all(await two.client(), b"t", numbered("two after ", 5))
    await send_all(await one.client(), b"t", numbered("one after ", 5))
    for edge in (one, two):
        expected = [*numbered("before ", 5), *numbered("two after ", 5), *numbered("one after ", 5)]
        await has_all(edge, expected)


async def test_a_link_that_follows_nobody_goes_on_too(
    new_server: NewServer, start: Start, tmp_path: Path
) -> None:
    """4.4: another connection has the lease, so that this one must see for itself that it is to begin anew."""
    server = await store(new_server)
    edge = await start(server, link=SLOW_BEATS)
    back = AnHourBack(server, edge)
    await back.begin(tmp_path)
    holder = await Neighbour.meet(edge)
    spare = Neighbour(await edge.client("link"), holder.name)
    await spare.say(b"HAVE 1 other inc1 -")
    await spare.hear(b"HAVE")
    await spare.follow()
    await (await edge.client()).publish(b"u", b"before")

    while not (await spare.hear(b"ENTRY")).endswith(b" u before"):
        pass
    await back.restore()
    await holder.closed()
    await spare.closed()


# servers without their store, and stores with one id


@pytest.mark.parametrize("how", ["reset", "silent"])
async def test_a_server_that_has_lost_its_store_is_left_for_another(
    new_server: NewServer, start: Start, how: str
) -> None:
    """4.3: its connections stand, but nothing would ever come over them; its neighbour server sees the store."""
    theirs = await store(new_server)
    async with Cable(theirs.port) as cable, edge_over(cable) as blind:
        seeing = await start(theirs)
        async with Cable(seeing.places["link"][1]) as to_seeing:
            to_seeing.pull_out()
            edge = await start(await store(new_server), neighbours=[blind.link_address, to_seeing.address])
            await until(lambda: blind.value("penstock_links_serving") == 1)
            await linked(edge)
            to_seeing.plug_in()
            sender, subscriber = await seeing.client(), await edge.client()
            await subscriber.subscribe(b"1", b"t")
            await sender.publish(b"t", b"before")
            assert await subscriber.line() == b"MESSAGE 1 before\n"
            if how == "reset":
                cable.pull_out()
            else:
                cable.pinch()
            await sender.publish(b"t", b"after")
            assert await subscriber.line() == b"MESSAGE 1 after\n"
            assert not blind.value("penstock_links_serving")
            assert edge.value("penstock_links_following") == seeing.value("penstock_links_serving") == 1
            cable.release()
            cable.plug_in()
            await until(blind.is_ready)
        await sender.publish(b"t", b"with both again")
        assert await subscriber.line() == b"MESSAGE 1 with both again\n"


async def test_a_copied_store_beside_its_original_is_said_once(
    new_server: NewServer, start: Start, tmp_path: Path
) -> None:
    """4.5: one of the two is followed, and the log says of the other, once, that it is a copy."""
    original = await store(new_server)
    copy = await asyncio.to_thread(copy_of, original, tmp_path)
    copied = new_server()
    await asyncio.to_thread(restore, copied, copy)
    edges = [await start(original), await start(copied)]
    async with Cable(edges[1].places["link"][1]) as cable:
        edge = await start(await store(new_server), neighbours=[edges[0].link_address, cable.address])
        await until(lambda: edge.log.events("link_to_clone"))
        for each in edges:
            await send_all(await each.client(), b"t", [b"from %d" % edges.index(each)])

        async def has_one() -> bool:
            return len(await messages(edge)) == 1

        await until(has_one)
        carried = cable.carried + 10 * len(b"BEAT 1-1\n")
        await until(lambda: cable.carried > carried)  # while links that may tell of it again stand and beat
        assert edge.value("penstock_links_following") == 1
        (line,) = edge.log.events("link_to_clone")
    assert line.levelname == "ERROR"
    assert "a copy needs an id of its own" in line.getMessage()


# numbers that are scattered


async def ended(neighbour: Neighbour, edge: LiveEdge) -> None:
    """Its link was closed for them, and the store has time for others."""
    await until(lambda: edge.refusals() == {"numbers_scattered": 1})
    await neighbour.closed()
    async with asyncio.timeout(PROMPT_S):
        await (await edge.client()).publish(b"t", b"still there")
        honest = await Neighbour.meet(edge, b"honest")
    await honest.entry(1, b"t", b"taken")
    await has_all(edge, [b"still there", b"taken"])


@pytest.mark.parametrize("line", [b"ENTRY other inc1 %d t m", b"GAP other inc1 %d %d"])
async def test_numbers_in_too_many_pieces_end_the_link(
    new_server: NewServer, start: Start, line: bytes
) -> None:
    """4.4, decision 9: every step of the store would become longer for everybody."""
    edge = await start(await store(new_server))
    neighbour = await Neighbour.meet(edge)
    odd = range(1, 40_000, 2)
    await neighbour.say(*[line % ((number,) * line.count(b"%d")) for number in odd])
    await ended(neighbour, edge)
    pieces = (await edge_pieces(edge))[b"other", b"inc1"]
    assert pieces == SCATTERED


async def edge_pieces(edge: LiveEdge) -> dict[tuple[bytes, bytes], int]:
    """In how many pieces the numbers of each origin are kept, there or gone."""
    state = await Replica(edge.service.log).state()
    return {
        origin: len(numbers.spans) for known in (state.gone, state.held) for origin, numbers in known.items()
    }


async def test_numbers_of_many_origins_do_not_keep_others_from_greeting(
    new_server: NewServer, start: Start
) -> None:
    """4.5: each origin within bounds, and together more than a list may have."""
    server = await store(new_server)
    edge = await start(server)
    odd = b"+".join([b"%d-%d" % (number, number) for number in range(1, 2 * SCATTERED, 2)])
    origins = [word for i in range(MAX_INTERVALS // SCATTERED + 1) for word in (b"x%d inc1" % i, odd)]
    await asyncio.to_thread(server.call, "HSET", edge.service.log.keys.log[2], *origins)
    client = await edge.client("link")
    await client.send(b"HAVE 1 honest inc1 -\n")
    for verb in (b"HAVE", b"FOLLOW"):
        said = await whole_list(client, verb)
        assert MAX_INTERVALS - SCATTERED < said.count(b"+") + said.count(b"/") <= MAX_INTERVALS
    honest = Neighbour(client, b"honest")
    await honest.entry(1, b"t", b"taken")
    await has_all(edge, [b"taken"])


async def whole_list(client: Client, verb: bytes) -> bytes:
    """All lines of it (4.5)."""
    said = b""
    while not said or said.endswith(b",\n"):
        line = await client.line()
        assert line.startswith((verb, b"BEAT")), line[:80]
        said += line if line.startswith(verb) else b""
    return said


async def test_a_greeting_too_long_to_be_kept_ends_the_link(new_server: NewServer, start: Start) -> None:
    """4.3, decision 9: what a neighbour had at first is written down for ever, so it is at most 1 MiB."""
    edge = await start(await store(new_server))
    client = await edge.client("link")
    first, lines = 9 * 10**15, []
    for at in range(30):
        numbers = range(first + 2 * at * LIST_ITEM, first + 2 * (at + 1) * LIST_ITEM, 2)
        lines.append(b"HAVE 1 other inc1 x/i:" + b"+".join([b"%d-%d" % (n, n) for n in numbers]))
    neighbour = Neighbour(client, b"other")
    await neighbour.say(b",\n".join(lines))
    await ended(neighbour, edge)
    assert await Replica(edge.service.log).neighbours() == [b"honest"]
