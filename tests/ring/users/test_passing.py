"""What is no queue operation: passed on, delivered, taken off (ring.md 2.2, 4.5, 5.5, 5.7)."""

from __future__ import annotations

import asyncio

from protos.ring import MAX_USER_SENT, NO_ID, Frame, Operation, encode_frame
from services.ring.node import counts
from services.store.catalogue.registry import Registry
from tests.live import until
from tests.ring.users.conftest import NewServer
from tests.ring.users.members import Member, Ring, Start
from tests.servers import Server

OUTBOX = {"ring": {"outbox": 1}}
INBOX = {"ring": {"inbox": 1}}


def numbered(count: int) -> list[bytes]:
    return [b"m%04d" % n for n in range(count)]


async def members(start: Start, server: Server, number: int, **how: object) -> list[Member]:
    return [await start(server, b"node:%d" % n, **how) for n in range(number)]


async def test_what_is_put_into_the_outbox_goes_round_once_and_in_order(start: Start, server: Server) -> None:
    """5.5: who put it on the ring takes it off. All nodes share one store: one of them serves its outbox."""
    nodes = await members(start, server, 5)
    ring = Ring(nodes, window=7)
    for link in ring.links:
        link.keeps = True
    await nodes[0].declare("out", bindings=OUTBOX)
    await nodes[0].put("out", *numbered(700))
    await until(lambda: sum(node.count(counts.TAKEN_OFF) for node in nodes) == 700)
    assert [node.count(counts.BEGUN) for node in nodes].count(0) == 4, "one node serves it"
    for link in ring.links:
        assert link.carried == numbered(700)
    await ring.settle_down()
    assert (await nodes[0].stats("out"))["ready"] == (await nodes[0].stats("out"))["in_flight"] == 0


async def test_equal_messages_all_go_round_once(start: Start, server: Server) -> None:
    """5.5: it counts copies."""
    nodes = await members(start, server, 3)
    ring = Ring(nodes, window=3)
    ring.links[0].keeps = True
    await nodes[0].declare("out", bindings=OUTBOX)
    await nodes[0].put("out", *[b"beat"] * 50)
    await until(lambda: sum(node.count(counts.TAKEN_OFF) for node in nodes) == 50)
    await ring.settle_down()
    assert [payload for payload in ring.links[0].carried if payload == b"beat"] == [b"beat"] * 50


async def test_an_empty_message_goes_round_like_any_other(start: Start, new_server: NewServer) -> None:
    """2.1, 2.4: any length from 0 on; beside others, and alone, and to an inbox behind a node without one."""
    nodes = [await start(await new_server(), b"node:%d" % n) for n in range(3)]
    await nodes[0].declare("out", bindings=OUTBOX)
    ring = Ring(nodes)
    for bodies, number in ([b""], 1), ([b"", b"x"], 3), ([b"", b""], 5):
        await nodes[0].put("out", *bodies)
        await until(lambda: nodes[0].count(counts.TAKEN_OFF) == number)  # noqa: B023
    await nodes[2].declare("in", bindings=INBOX)
    await until(lambda: nodes[2].users.bindings.inbox)
    await nodes[0].put("out", b"", b"y")
    await until(lambda: nodes[2].count(counts.DELIVERED) == 2)
    await ring.settle_down()
    assert await nodes[2].bodies("in") == [b"", b"y"]
    assert [node.count(counts.UNSAFE) for node in nodes] == [0, 0, 0]


async def test_inboxes_get_what_goes_round(start: Start, new_server: NewServer) -> None:
    """5.5: forward_user: every store's application sees it, but not where it was put on."""
    nodes = [await start(await new_server(), b"node:%d" % n, forward_user=True) for n in range(3)]
    for node in nodes:
        await node.declare("in", bindings=INBOX)
    await nodes[1].declare("out", bindings=OUTBOX)
    ring = Ring(nodes)
    await nodes[1].put("out", *numbered(40))
    await until(lambda: nodes[1].count(counts.TAKEN_OFF) == 40)
    await ring.settle_down()
    assert [await node.bodies("in") for node in nodes] == [numbered(40), [], numbered(40)]


async def test_without_forward_user_the_first_inbox_gets_it(start: Start, new_server: NewServer) -> None:
    """5.5; a node without an inbox is nobody's destination, so there it goes on."""
    nodes = [await start(await new_server(), b"node:%d" % n) for n in range(4)]
    await nodes[0].declare("out", bindings=OUTBOX)
    for node in nodes[2:]:
        await node.declare("in", bindings=INBOX)
    await until(lambda: nodes[2].users.bindings.inbox)
    ring = Ring(nodes)
    await nodes[0].put("out", *numbered(10))
    await until(lambda: nodes[2].count(counts.DELIVERED) == 10)
    await ring.settle_down()
    assert await nodes[2].bodies("in") == numbered(10)
    assert await nodes[3].bodies("in") == []


async def test_a_full_inbox_does_not_stop_the_ring(
    start: Start, server: Server, new_server: NewServer
) -> None:
    """Nothing is lost: what it refuses is among its dead letters, with the reason."""
    one, other = await start(server, b"a"), await start(await new_server(), b"b")
    await other.declare("in", bindings=INBOX, maxLength=2)
    await until(lambda: other.users.bindings.inbox)
    await one.declare("out", bindings=OUTBOX)
    ring = Ring([one, other])
    await one.put("out", *numbered(5))
    await until(lambda: other.count(counts.DELIVERED) + other.count(counts.BURIED) == 5)
    await ring.settle_down()
    assert await other.bodies("in") == numbered(5)[:2]
    assert [(letter.body, letter.reason) for letter in await other.dead("in")] == [
        (body, "queue_full") for body in numbered(5)[2:]
    ]


async def test_bindings_are_followed(start: Start, server: Server, new_server: NewServer) -> None:
    """5.5: noticed while the node runs; also when they are taken away."""
    one, other = await start(server, b"a"), await start(await new_server(), b"b")
    Ring([one, other])
    await one.declare("out", bindings=OUTBOX)
    await one.put("out", b"first")
    await until(lambda: one.count(counts.TAKEN_OFF) == 1)
    await other.declare("in", bindings=INBOX)
    await until(lambda: other.users.bindings.inbox)
    await one.put("out", b"second")
    await until(lambda: other.count(counts.DELIVERED) == 1)
    await other.declare("in")
    await until(lambda: other.users.bindings.inbox is None)
    await one.put("out", b"third")
    await until(lambda: one.count(counts.TAKEN_OFF) == 2)
    assert await other.bodies("in") == [b"second"]


async def test_a_node_that_has_just_started_knows_its_inbox_before_anything_passes(
    start: Start, server: Server
) -> None:
    """Else what comes in its first moments would go by."""
    node = await start(server, b"a")
    await node.declare("in", bindings=INBOX)
    await node.close()
    again = Member(server.url, b"a")
    again.store.start_serving()
    again.users.start()
    safe: list[bytes] = []
    for body in numbered(30):
        again.users.arrivals.received(body, lambda body=body: safe.append(body))  # type: ignore[misc]
    await until(lambda: safe == numbered(30))
    assert await again.bodies("in") == numbered(30)
    assert again.count(counts.PASSED_ON) == 0
    await again.close()


async def test_a_message_that_fits_no_user_is_a_dead_letter_of_the_outbox(
    start: Start, server: Server
) -> None:
    """2.1: what we begin has less than 2^14 octets."""
    nodes = await members(start, server, 2)
    ring = Ring(nodes)
    ring.links[0].keeps = ring.links[1].keeps = True
    await nodes[0].declare("out", bindings=OUTBOX)
    large = bytes(MAX_USER_SENT + 1)
    fits = b"x" * MAX_USER_SENT
    await nodes[0].put("out", b"before", large, large, fits, large, b"behind")
    await until(lambda: sum(node.count(counts.TAKEN_OFF) for node in nodes) == 3)
    await ring.settle_down()
    assert sorted(ring.links[0].carried) == sorted([b"before", fits, b"behind"])
    assert [(len(letter.body), letter.reason) for letter in await nodes[0].dead("out")] == [
        (len(large), "too_large_for_ring")
    ] * 3


async def test_what_a_dead_node_put_on_leaves_the_ring(start: Start, server: Server) -> None:
    """5.7: after max_laps passes it is asked about, and taken off as nobody claims it."""
    nodes = await members(start, server, 4, max_laps=3)
    await nodes[0].declare("out", bindings=OUTBOX)
    await until(lambda: sum(node.users.bindings.outbox is not None for node in nodes) == 4)
    ring = Ring(nodes)
    for link in ring.links:
        link.cut()
    await nodes[0].put("out", *numbered(30))
    await until(lambda: sum(node.count(counts.BEGUN) for node in nodes) == 30)
    dead = next(node for node in nodes if node.count(counts.BEGUN))
    before, behind = nodes[nodes.index(dead) - 1], nodes[(nodes.index(dead) + 1) % 4]
    for link in ring.links:
        link.mend()  # they go once round, and the node dies with the knowledge that it put them on
    await until(lambda: behind.count(counts.PASSED_ON) >= 5)
    await dead.close()
    for link in ring.links:
        if link.source is dead:
            link.cut()
        elif link.goal is dead:
            link.cut()
            link.mend(behind)
    rest = [node for node in nodes if node is not dead]
    await until(lambda: all(len(node.users.arrivals) == 0 for node in rest))
    for node in rest:
        await until(node.has_nothing_to_send)
    laps = sum(node.count("laps") for node in rest)
    asked = sum(node.count("nobody_claims") for node in rest)
    assert laps + dead.count(counts.TAKEN_OFF) <= 30
    assert asked >= laps
    assert before is not dead


async def test_a_frame_without_an_id_leaves_the_ring_too(start: Start, server: Server) -> None:
    """5.5: nobody serves its queue, its sender is dead; it is taken off after some passes."""
    nodes = await members(start, server, 3)
    ring = Ring(nodes)
    payload = encode_frame(Frame(Operation.PUSH, b"original", b"nowhere", b"x", NO_ID))
    safe = asyncio.Event()
    nodes[1].users.arrivals.received(payload, safe.set)
    await safe.wait()
    await until(lambda: sum(node.count("laps") for node in nodes) == 1)
    await ring.settle_down()


async def test_while_there_is_no_link_everything_waits_and_a_restart_keeps_it(
    start: Start, server: Server
) -> None:
    """4.5: in the store, in order; the next life of the node has it."""
    node = await start(server, b"a")
    for body in numbered(600):
        node.users.arrivals.received(body, lambda: None)
    await until(lambda: node.count(counts.PASSED_ON) == 600)
    await node.close()
    again = await start(server, b"a")
    other = await start(server, b"b")
    ring = Ring([again, other])
    ring.links[0].keeps = True
    await until(lambda: len(ring.links[0].carried) >= 600)
    assert ring.links[0].carried[:600] == numbered(600)


async def test_broken_links_lose_nothing_and_keep_the_order(start: Start, server: Server) -> None:
    """2.2: what was not answered goes again, in its order."""
    nodes = await members(start, server, 2)
    ring = Ring(nodes, window=16)
    link = ring.links[0]
    link.keeps = True
    for number, body in enumerate(numbered(500)):
        nodes[0].users.arrivals.received(body, lambda: None)
        if number % 50 == 0:
            await asyncio.sleep(0)
            link.cut(lost=number % 7)
            link.mend()
    wanted = set(numbered(500))  # beside questions about them: nobody takes them off (5.7)
    await until(lambda: wanted.issubset(link.carried))
    firsts = list(dict.fromkeys(body for body in link.carried if body in wanted))
    assert firsts == numbered(500)


async def test_safe_is_told_in_order(start: Start, server: Server) -> None:
    """2.2: also where some need the store, and some nothing."""
    node = await start(server, b"a")
    await node.declare("here")
    told: list[int] = []
    frames = [
        b"plain",
        encode_frame(Frame(Operation.PUSH, b"b", b"here", b"1", b"1" * 16)),
        encode_frame(Frame(Operation.OK, b"a", b"q", b"", b"2" * 16)),  # late
        encode_frame(Frame(Operation.PUSH, b"b", b"elsewhere", b"1", b"3" * 16)),
        encode_frame(Frame(Operation.OK, b"c", b"q", b"", b"4" * 16)),
        encode_frame(Frame(Operation.PULL, b"b", b"here", b"", b"5" * 16)),
        encode_frame(Frame(Operation.DESTROY_QUEUE, b"b", b"elsewhere", b"", b"6" * 16)),
        b"plain again",
    ] * 3
    for number, payload in enumerate(frames):
        node.users.arrivals.received(payload, lambda number=number: told.append(number))  # type: ignore[misc]
    assert told == [], "never before it was received"
    await until(lambda: len(told) == len(frames))
    assert told == list(range(len(frames)))
    assert isinstance(node.store.registry, Registry)
