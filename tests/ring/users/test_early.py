"""Messages leave while they are being put into the store; what is answered is in it all the same (ring.md 2.2, 4.5)."""

from __future__ import annotations

from protos.ring import Frame, Operation, encode_frame
from services.ring.node import counts
from services.ring.node.passage import Parcel
from tests.live import until
from tests.ring.users.conftest import NewServer
from tests.ring.users.members import Member, Start
from tests.servers import Server


class Hand:
    """The predecessor and the successor, by hand."""

    def __init__(self, node: Member) -> None:
        self.node = node
        self.safe: list[bytes] = []

    def sends(self, *payloads: bytes) -> None:
        for payload in payloads:
            self.node.users.arrivals.received(payload, lambda payload=payload: self.safe.append(payload))  # type: ignore[misc]

    async def takes(self, number: int) -> list[Parcel]:
        taken: list[Parcel] = []

        def enough() -> bool:
            taken.extend(self.node.users.departures.take(number - len(taken)))
            return len(taken) == number

        await until(enough)
        return taken


def payloads(parcels: list[Parcel]) -> list[bytes]:
    return [parcel.payload for parcel in parcels]


async def quiet(node: Member) -> None:
    """Nothing is looked for in its queue any more."""
    await until(lambda: node.users._outgoing.is_clear and not node.users._outgoing._is_looking)


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
    await until(lambda: node.users._storing.trouble is not None)
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
    """Anybody who may use the store may do that: what comes later is not sent twice for it."""
    node = await start(server, b"a")
    hand = Hand(node)
    await quiet(node)
    outgoing = node.users._outgoing
    outgoing.put([b"never stored"], is_begun=False)
    hand.sends(*(b"%d" % n for n in range(50)))
    assert payloads(await hand.takes(51)) == [b"never stored", *(b"%d" % n for n in range(50))]
    await until(lambda: len(hand.safe) == 50)
    await until(lambda: not outgoing._early)
    assert node.users.departures.take(10) == []
