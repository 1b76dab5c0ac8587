"""Messages leave while they are being put into the store; what is answered is in it all the same (ring.md 2.2, 4.5)."""

from __future__ import annotations

import asyncio

import pytest

from protos.ring import Frame, Operation, encode_frame
from services.ring.node import counts
from services.ring.node.outgoing.outgoing import BEGUN
from services.ring.node.outgoing.parcels import Stored
from services.ring.node.outgoing.passage import Parcel
from services.store import CommitPart, Queue, Source
from services.store.model import records
from services.store.model.internal import KEEPER
from tests.live import until
from tests.ring.users.conftest import NewServer
from tests.ring.users.members import Hand, Member, Start, is_mark
from tests.servers import Server


def payloads(parcels: list[Parcel]) -> list[bytes]:
    return [parcel.payload for parcel in parcels]


async def quiet(node: Member) -> None:
    """Nothing is looked for in its queue any more."""
    await until(lambda: node.users.outgoing.is_early)


async def test_it_leaves_before_it_is_safe(start: Start, new_server: NewServer) -> None:
    server = await new_server()
    node = await start(server, b"a")
    hand = Hand(node)
    await quiet(node)
    server.stop()
    hand.sends(b"1", b"2")
    assert payloads(await hand.takes(2)) == [b"1", b"2"]
    assert hand.safe == []
    server.cont()
    await until(lambda: hand.safe == [b"1", b"2"])
    assert (await node.stats(node.users.queue_name))["in_flight"] == 2


async def test_what_was_answered_before_it_was_stored_is_settled(start: Start, new_server: NewServer) -> None:
    server = await new_server()
    node = await start(server, b"a")
    hand = Hand(node)
    await quiet(node)
    server.stop()
    hand.sends(b"1", b"2", b"3")
    first, second, third = await hand.takes(3)
    first.acknowledged()
    third.returned()
    second.returned()
    server.cont()
    await until(lambda: len(hand.safe) == 3)
    assert payloads(await hand.takes(2)) == [b"2", b"3"]

    async def is_settled() -> bool:
        stats = await node.stats(node.users.queue_name)
        return bool((stats["acked"], stats["in_flight"]) == (1, 2))

    await until(is_settled)


async def test_what_left_and_was_never_stored_goes_again(start: Start, new_server: NewServer) -> None:
    """The store died over it: at least once, and the predecessor was not answered."""
    server = await new_server()
    node = await start(server, b"a")
    hand = Hand(node)
    await quiet(node)
    server.kill9()
    hand.sends(b"1", b"2")
    early = await hand.takes(2)
    await until(lambda: node.users.storing.trouble is not None)
    early[1].returned()
    early[0].acknowledged()
    assert node.users.departures.take(10) == []
    server.restart()
    assert payloads(await hand.takes(2)) == [b"1", b"2"]
    await until(lambda: hand.safe == [b"1", b"2"])


async def test_a_frame_that_comes_again_meanwhile_goes_on_once(start: Start, new_server: NewServer) -> None:
    """Its second pass may be faster than the disk (5.5), and so may the predecessor be that sends it again."""
    server = await new_server()
    node = await start(server, b"a")
    hand = Hand(node)
    await quiet(node)
    reply = encode_frame(Frame(Operation.OK, b"b", b"q", b"", b"1" * 16))
    push = encode_frame(Frame(Operation.PUSH, b"b", b"nowhere", b"", b"2" * 16))
    hand.sends(push, reply)
    assert payloads(await hand.takes(2)) == [push, reply]
    hand.sends(reply, push, reply)
    await until(lambda: len(hand.safe) == 5)
    assert hand.safe == [push, reply, reply, push, reply]
    assert payloads(node.users.departures.take(10)) == []
    assert node.count(counts.PASSED_ON) == 2
    hand.sends(reply)
    await until(lambda: node.count("seen") > 0)


async def test_what_somebody_took_out_of_the_queue_confuses_nobody(start: Start, server: Server) -> None:
    """4.5: anybody who may use the store may do that. What comes later is not sent twice for it, and what is gone is
    not sent again, nor taken for a message that says the same and comes later."""
    node = await start(server, b"a")
    hand = Hand(node)
    await quiet(node)
    outgoing = node.users.outgoing
    outgoing.are_safe(outgoing.put([b"taken", b"before it was sent"], is_begun=False))
    (gone,) = await hand.takes(1)
    hand.sends(*(b"%d" % n for n in range(50)))
    outgoing.look()  # or nobody sees for a second that it is not there
    await until(lambda: len(hand.safe) == 50)
    await until(lambda: not len(outgoing.underway))
    gone.returned()
    assert payloads(await hand.takes(50)) == [b"%d" % n for n in range(50)]
    await node.put(node.users.queue_name, b"taken")
    assert payloads(await hand.takes(1)) == [b"taken"]
    assert node.users.departures.take(10) == []


class Mover(Hand):
    """Also what the node moves out of its outbox, and another one who uses the queue, without a wait of their own."""

    @property
    def queue(self) -> Queue:
        queue = self.node.users.ownership.queue
        assert queue is not None
        return queue

    def begins(self, *payloads: bytes) -> asyncio.Task[None]:
        part = CommitPart(self.queue, [], [records.encode(payload) for payload in payloads], BEGUN)
        return asyncio.create_task(self.node.users.outbox.commit([part], list(payloads)))

    def puts(self, *payloads: bytes) -> asyncio.Future[object]:
        told: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        pipe = self.node.service.pipe(self.queue)
        pipe.messages.publish(
            Source(KEEPER), self.queue, list(map(records.encode, payloads)), "test", told.set_result
        )
        return told

    async def gather(self, server: Server) -> None:
        """The store stands still, with a call that has `first`: what comes now goes into the next one."""
        await quiet(self.node)
        server.stop()
        self.sends(b"first")
        await until(lambda: self.node.service.pipe(self.queue).is_asking)

    async def takes(self, number: int) -> list[Parcel]:
        """Without the marks, which come back at once."""
        taken: list[Parcel] = []
        while len(taken) < number:
            taken += self._without_marks(await super().takes(1))
        return taken

    def _without_marks(self, parcels: list[Parcel]) -> list[Parcel]:
        for parcel in parcels:
            if is_mark(parcel.payload):
                parcel.acknowledged()
                self.sends(parcel.payload)
        return [parcel for parcel in parcels if not is_mark(parcel.payload)]

    async def nothing_is_left(self) -> None:
        """To be sent, or to be settled."""

        async def is_all() -> bool:
            again = self._without_marks(self.node.users.departures.take(64))
            assert payloads(again) == [], "sent twice"
            return not self.node.users.marks_wanted and await self.node.has_nothing_to_send()

        await until(is_all)


def place(parcel: Parcel) -> tuple[int, ...]:
    """In the queue."""
    assert isinstance(parcel, Stored)
    entry, index = parcel.place
    return (*map(int, entry.split(b"-")), index)


@pytest.mark.parametrize("others", [0, 1, 300])
async def test_what_is_begun_and_what_is_passed_on_leave_in_the_order_of_the_queue(
    start: Start, new_server: NewServer, others: int
) -> None:
    """4.5: the store carries out what a call holds by kinds, and no kind may go around another. Others may put
    something in between, which changes nothing."""
    server = await new_server()
    node = await start(server, b"a")
    hand = Mover(node)
    await hand.gather(server)
    begun = [hand.begins(b"begun 0", b"begun 1")]
    left = await hand.takes(3)
    anothers = [b"another's %d" % n for n in range(others)]
    told = [hand.puts(*anothers)] if others else []
    hand.sends(b"passed 0", b"passed 1")
    left += await hand.takes(2)
    begun.append(hand.begins(b"begun 2"))
    left += await hand.takes(1)
    assert payloads(left) == [b"first", b"begun 0", b"begun 1", b"passed 0", b"passed 1", b"begun 2"]
    server.cont()
    await asyncio.gather(*begun, *told)
    if not others:
        assert len(node.users.outgoing.underway) == 0, "the call that put them in has taken them, too"
    for payload in anothers:
        (parcel,) = await hand.takes(1)
        assert parcel.payload == payload
        parcel.acknowledged()
    await until(lambda: not len(node.users.outgoing.underway))
    assert [*map(place, left)] == sorted(map(place, left))
    for parcel in left:
        parcel.acknowledged()
    await hand.nothing_is_left()


async def test_what_comes_while_the_queue_is_looked_through_leaves_in_its_order(
    start: Start, new_server: NewServer
) -> None:
    """4.5: the first waits, as the look may find older ones; the second comes when that is over, and is not faster."""
    server = await new_server()
    node = await start(server, b"a")
    hand = Mover(node)
    await quiet(node)
    hand.sends(*(b"%d" % n for n in range(-5, 1)))
    before = await hand.takes(6)
    await until(lambda: len(hand.safe) == 6)
    await quiet(node)
    server.stop()
    node.users.outgoing.look()
    for parcel in before[:5]:
        parcel.acknowledged()  # that makes room
    pipe = node.service.pipe(hand.queue)
    pipe.messages.count(Source(KEEPER), hand.queue, lambda _: hand.sends(b"2"))
    await until(lambda: pipe.is_asking)
    hand.sends(b"1")
    await until(lambda: not node.users.storing)
    assert node.users.departures.take(10) == []
    server.cont()
    left = await hand.takes(2)
    assert payloads(left) == [b"1", b"2"]
    await until(lambda: hand.safe[6:] == [b"1", b"2"])
    for parcel in [before[5], *left]:
        parcel.acknowledged()
    await hand.nothing_is_left()


async def test_what_nobody_could_say_was_moved_goes_once_all_the_same(
    start: Start, new_server: NewServer
) -> None:
    """4.5: the outbox asks again. What had left is in the queue by then, or later, behind what came meanwhile."""
    server = await new_server()
    node = await start(server, b"a", request_timeout_s=0.7)
    hand = Mover(node)
    pipe = node.service.pipe(hand.queue)
    await quiet(node)
    server.stop()
    begun = hand.begins(b"begun")
    await until(lambda: pipe.is_asking)
    hand.sends(b"passed")
    left = await hand.takes(2)
    assert payloads(left) == [b"begun", b"passed"]
    await until(lambda: node.store_events("outcome_unknown"))
    server.cont()
    for parcel in left:
        parcel.acknowledged()
    await begun
    await hand.nothing_is_left()
    await until(lambda: hand.safe[:1] == [b"passed"])
    assert node.count(counts.UNSAFE) == 0
