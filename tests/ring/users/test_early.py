"""Messages leave while they are being stored; answered ones are in the store (ring.md 2.2, 4.5)."""

from __future__ import annotations

import asyncio

import pytest

from protos.ring import Frame, Operation, encode_frame
from services.ring.node.counts import UserOutcome
from services.ring.node.outgoing.outgoing import BEGUN
from services.ring.node.outgoing.stored_message import StoredMessage
from services.ring.node.outgoing.user_flow import OutgoingMessage
from services.store import CommitPart, Queue, Source
from services.store.model import records
from services.store.model.internal import KEEPER
from tests.live import until
from tests.ring.users.conftest import NewServer
from tests.ring.users.members import Hand, Member, Start, is_mark
from tests.servers import Server


def payloads(outgoing_messages: list[OutgoingMessage]) -> list[bytes]:
    return [outgoing_message.payload for outgoing_message in outgoing_messages]


async def quiet(node: Member) -> None:
    """Wait until the node no longer polls its queue."""
    await until(lambda: node.users.outgoing.is_early)


async def test_message_leaves_before_it_is_stored(start: Start, new_server: NewServer) -> None:
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


async def test_message_answered_before_it_was_stored_is_settled(start: Start, new_server: NewServer) -> None:
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


async def test_message_that_was_never_stored_is_sent_again(start: Start, new_server: NewServer) -> None:
    """Check that a message that was never stored is sent again (at least once).

    The store died while storing it, and the predecessor got no answer.
    """
    server = await new_server()
    node = await start(server, b"a")
    hand = Hand(node)
    await quiet(node)
    server.kill9()
    hand.sends(b"1", b"2")
    early = await hand.takes(2)
    await until(lambda: node.users.writer.trouble is not None)
    early[1].returned()
    early[0].acknowledged()
    assert node.users.user_source.take(10) == []
    server.restart()
    assert payloads(await hand.takes(2)) == [b"1", b"2"]
    await until(lambda: hand.safe == [b"1", b"2"])


async def test_repeated_frame_is_forwarded_once(start: Start, new_server: NewServer) -> None:
    """Check that a repeated frame is forwarded once.

    Its second pass may be faster than the disk (5.5), and so may a predecessor that sends it again.
    """
    server = await new_server()
    node = await start(server, b"a")
    hand = Hand(node)
    await quiet(node)
    reply = encode_frame(Frame(Operation.OK, b"b", b"q", b"", b"1" * 16))
    push = encode_frame(Frame(Operation.PUSH, b"b", b"missing", b"", b"2" * 16))
    hand.sends(push, reply)
    assert payloads(await hand.takes(2)) == [push, reply]
    hand.sends(reply, push, reply)
    await until(lambda: len(hand.safe) == 5)
    assert hand.safe == [push, reply, reply, push, reply]
    assert payloads(node.users.user_source.take(10)) == []
    assert node.count(UserOutcome.PASSED_ON) == 2
    hand.sends(reply)
    await until(lambda: node.count("seen") > 0)


async def test_message_taken_by_another_client_is_not_resent(start: Start, server: Server) -> None:
    """Check that a message taken by another client of the store is not sent again (4.5).

    Later messages are not sent twice because of it, and none is mistaken for it.
    """
    node = await start(server, b"a")
    hand = Hand(node)
    await quiet(node)
    outgoing = node.users.outgoing
    outgoing.are_safe(outgoing.put([b"taken", b"before it was sent"], is_begun=False))
    (gone,) = await hand.takes(1)
    hand.sends(*(b"%d" % n for n in range(50)))
    outgoing.poll()  # otherwise it takes a second to detect that it is closed
    await until(lambda: len(hand.safe) == 50)
    await until(lambda: not len(outgoing.in_flight))
    gone.returned()
    assert payloads(await hand.takes(50)) == [b"%d" % n for n in range(50)]
    await node.put(node.users.queue_name, b"taken")
    assert payloads(await hand.takes(1)) == [b"taken"]
    assert node.users.user_source.take(10) == []


class Mover(Hand):
    """A hand that also moves messages out of the outbox, or acts as another user of the queue, without waiting."""

    @property
    def queue(self) -> Queue:
        queue = self.node.users.ownership.queue
        assert queue is not None
        return queue

    def begins(self, *payloads: bytes) -> asyncio.Task[None]:
        part = CommitPart(self.queue, [], [records.encode(payload) for payload in payloads], BEGUN)
        return asyncio.create_task(self.node.users.outbox.commit([part], list(payloads)))

    def puts(self, *payloads: bytes) -> asyncio.Future[object]:
        outcome: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        pipe = self.node.service.pipe(self.queue)
        pipe.messages.publish(
            Source(KEEPER), self.queue, list(map(records.encode, payloads)), "test", outcome.set_result
        )
        return outcome

    async def gather(self, server: Server) -> None:
        """Stop the store during a call that has `first`: later messages go into the next call."""
        await quiet(self.node)
        server.stop()
        self.sends(b"first")
        await until(lambda: self.node.service.pipe(self.queue).is_asking)

    async def takes(self, number: int) -> list[OutgoingMessage]:
        """Take messages, leaving out marks, which return at once."""
        taken: list[OutgoingMessage] = []
        while len(taken) < number:
            taken += self._without_marks(await super().takes(1))
        return taken

    def _without_marks(self, outgoing_messages: list[OutgoingMessage]) -> list[OutgoingMessage]:
        for outgoing_message in outgoing_messages:
            if is_mark(outgoing_message.payload):
                outgoing_message.acknowledged()
                self.sends(outgoing_message.payload)
        return [
            outgoing_message
            for outgoing_message in outgoing_messages
            if not is_mark(outgoing_message.payload)
        ]

    async def nothing_is_left(self) -> None:
        """Check that no message is left to be sent or settled."""

        async def is_all() -> bool:
            again = self._without_marks(self.node.users.user_source.take(64))
            assert payloads(again) == [], "sent twice"
            return not self.node.users.marks.are_wanted and await self.node.has_nothing_to_send()

        await until(is_all)


def place(outgoing_message: OutgoingMessage) -> tuple[int, ...]:
    """Return its position in the queue."""
    assert isinstance(outgoing_message, StoredMessage)
    entry, index = outgoing_message.place
    return (*map(int, entry.split(b"-")), index)


@pytest.mark.parametrize("others", [0, 1, 300])
async def test_begun_and_forwarded_messages_leave_in_queue_order(
    start: Start, new_server: NewServer, others: int
) -> None:
    """Check that begun and forwarded messages leave in queue order (4.5).

    The store carries out the operations of a call by kind, and none may overtake another.

    Entries of other writers in between change nothing.
    """
    server = await new_server()
    node = await start(server, b"a")
    hand = Mover(node)
    await hand.gather(server)
    begun = [hand.begins(b"begun 0", b"begun 1")]
    left = await hand.takes(3)
    anothers = [b"another's %d" % n for n in range(others)]
    results = [hand.puts(*anothers)] if others else []
    hand.sends(b"passed 0", b"passed 1")
    left += await hand.takes(2)
    begun.append(hand.begins(b"begun 2"))
    left += await hand.takes(1)
    assert payloads(left) == [b"first", b"begun 0", b"begun 1", b"passed 0", b"passed 1", b"begun 2"]
    server.cont()
    await asyncio.gather(*begun, *results)
    if not others:
        assert len(node.users.outgoing.in_flight) == 0, "the call that stored them has taken them, too"
    for payload in anothers:
        (outgoing_message,) = await hand.takes(1)
        assert outgoing_message.payload == payload
        outgoing_message.acknowledged()
    await until(lambda: not len(node.users.outgoing.in_flight))
    assert [*map(place, left)] == sorted(map(place, left))
    for outgoing_message in left:
        outgoing_message.acknowledged()
    await hand.nothing_is_left()


async def test_messages_that_come_during_a_poll_leave_in_order(start: Start, new_server: NewServer) -> None:
    """Check that messages that come during a poll leave in order (4.5).

    The first waits, as the poll may find older ones; the second arrives after the poll and does not overtake it.
    """
    server = await new_server()
    node = await start(server, b"a")
    hand = Mover(node)
    await quiet(node)
    hand.sends(*(b"%d" % n for n in range(-5, 1)))
    before = await hand.takes(6)
    await until(lambda: len(hand.safe) == 6)
    await quiet(node)
    server.stop()
    node.users.outgoing.poll()
    for outgoing_message in before[:5]:
        outgoing_message.acknowledged()  # a message that makes room
    pipe = node.service.pipe(hand.queue)
    pipe.messages.count(Source(KEEPER), hand.queue, lambda _: hand.sends(b"2"))
    await until(lambda: pipe.is_asking)
    hand.sends(b"1")
    await until(lambda: not node.users.writer)
    assert node.users.user_source.take(10) == []
    server.cont()
    left = await hand.takes(2)
    assert payloads(left) == [b"1", b"2"]
    await until(lambda: hand.safe[6:] == [b"1", b"2"])
    for outgoing_message in [before[5], *left]:
        outgoing_message.acknowledged()
    await hand.nothing_is_left()


async def test_move_with_unknown_outcome_is_done_once(start: Start, new_server: NewServer) -> None:
    """Check that a move with unknown outcome is done once: the outbox asks again (4.5).

    Sent messages are in the queue by then, or later, behind messages that arrived meanwhile.
    """
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
    for outgoing_message in left:
        outgoing_message.acknowledged()
    await begun
    await hand.nothing_is_left()
    await until(lambda: hand.safe[:1] == [b"passed"])
    assert node.count(UserOutcome.UNSAFE) == 0
