"""Messages without a queue operation: forwarded, delivered, taken off (ring.md 2.2, 4.5, 5.5, 5.7)."""

from __future__ import annotations

import asyncio

from protos.ring import MAX_USER_SENT, NO_ID, Frame, Operation, encode_frame
from services.ring.node.counts import UserOutcome
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


async def test_outbox_messages_go_around_once_in_order(start: Start, server: Server) -> None:
    """Check that outbox messages go around once in order, and their sender takes them off (5.5).

    All nodes share one store, and one of them serves its outbox.
    """
    nodes = await members(start, server, 5)
    ring = Ring(nodes, window=7)
    for link in ring.links:
        link.keeps = True
    await nodes[0].declare("out", bindings=OUTBOX)
    await nodes[0].put("out", *numbered(700))
    await until(lambda: sum(node.count(UserOutcome.TAKEN_OFF) for node in nodes) == 700)
    assert [node.count(UserOutcome.BEGUN) for node in nodes].count(0) == 4, "one node serves it"
    for link in ring.links:
        assert link.carried == numbered(700)
    await ring.settle_down()
    assert (await nodes[0].stats("out"))["ready"] == (await nodes[0].stats("out"))["in_flight"] == 0


async def test_equal_messages_go_around_once_each(start: Start, server: Server) -> None:
    """Check that equal messages go around once each: the sender counts copies (5.5)."""
    nodes = await members(start, server, 3)
    ring = Ring(nodes, window=3)
    ring.links[0].keeps = True
    await nodes[0].declare("out", bindings=OUTBOX)
    await nodes[0].put("out", *[b"beat"] * 50)
    await until(lambda: sum(node.count(UserOutcome.TAKEN_OFF) for node in nodes) == 50)
    await ring.settle_down()
    assert [payload for payload in ring.links[0].carried if payload == b"beat"] == [b"beat"] * 50


async def test_empty_message_goes_around(start: Start, new_server: NewServer) -> None:
    """Check that an empty message goes around (2.1, 2.4).

    It goes beside others, alone, and to an inbox behind a node without one.
    """
    nodes = [await start(await new_server(), b"node:%d" % n) for n in range(3)]
    await nodes[0].declare("out", bindings=OUTBOX)
    ring = Ring(nodes)
    for bodies, number in ([b""], 1), ([b"", b"x"], 3), ([b"", b""], 5):
        await nodes[0].put("out", *bodies)
        await until(lambda: nodes[0].count(UserOutcome.TAKEN_OFF) == number)  # noqa: B023
    await nodes[2].declare("in", bindings=INBOX)
    await until(lambda: nodes[2].users.bindings.inbox)
    await nodes[0].put("out", b"", b"y")
    await until(lambda: nodes[2].count(UserOutcome.DELIVERED) == 2)
    await ring.settle_down()
    assert await nodes[2].bodies("in") == [b"", b"y"]
    assert [node.count(UserOutcome.UNSAFE) for node in nodes] == [0, 0, 0]


async def test_every_inbox_gets_each_message_with_forward_user(start: Start, new_server: NewServer) -> None:
    """Check that with forward_user each store's inbox gets each message, except at its origin (5.5)."""
    nodes = [await start(await new_server(), b"node:%d" % n, forward_user=True) for n in range(3)]
    for node in nodes:
        await node.declare("in", bindings=INBOX)
    await nodes[1].declare("out", bindings=OUTBOX)
    ring = Ring(nodes)
    await nodes[1].put("out", *numbered(40))
    await until(lambda: nodes[1].count(UserOutcome.TAKEN_OFF) == 40)
    await ring.settle_down()
    assert [await node.bodies("in") for node in nodes] == [numbered(40), [], numbered(40)]


async def test_without_forward_user_the_first_inbox_gets_it(start: Start, new_server: NewServer) -> None:
    """Check that without forward_user the first inbox gets it; a node without an inbox forwards (5.5)."""
    nodes = [await start(await new_server(), b"node:%d" % n) for n in range(4)]
    await nodes[0].declare("out", bindings=OUTBOX)
    for node in nodes[2:]:
        await node.declare("in", bindings=INBOX)
    await until(lambda: nodes[2].users.bindings.inbox)
    ring = Ring(nodes)
    await nodes[0].put("out", *numbered(10))
    await until(lambda: nodes[2].count(UserOutcome.DELIVERED) == 10)
    await ring.settle_down()
    assert await nodes[2].bodies("in") == numbered(10)
    assert await nodes[3].bodies("in") == []


async def test_a_full_inbox_does_not_stop_the_ring(
    start: Start, server: Server, new_server: NewServer
) -> None:
    """Check that a full inbox does not stop the ring: refused messages become dead letters with the reason."""
    one, other = await start(server, b"a"), await start(await new_server(), b"b")
    await other.declare("in", bindings=INBOX, maxLength=2)
    await until(lambda: other.users.bindings.inbox)
    await one.declare("out", bindings=OUTBOX)
    ring = Ring([one, other])
    await one.put("out", *numbered(5))
    await until(lambda: other.count(UserOutcome.DELIVERED) + other.count(UserOutcome.BURIED) == 5)
    await ring.settle_down()
    assert await other.bodies("in") == numbered(5)[:2]
    assert [(letter.body, letter.reason) for letter in await other.dead("in")] == [
        (body, "queue_full") for body in numbered(5)[2:]
    ]


async def test_bindings_are_followed(start: Start, server: Server, new_server: NewServer) -> None:
    """Check that changed bindings are followed while the node runs, also removed ones (5.5)."""
    one, other = await start(server, b"a"), await start(await new_server(), b"b")
    Ring([one, other])
    await one.declare("out", bindings=OUTBOX)
    await one.put("out", b"first")
    await until(lambda: one.count(UserOutcome.TAKEN_OFF) == 1)
    await other.declare("in", bindings=INBOX)
    await until(lambda: other.users.bindings.inbox)
    await one.put("out", b"second")
    await until(lambda: other.count(UserOutcome.DELIVERED) == 1)
    await other.declare("in")
    await until(lambda: other.users.bindings.inbox is None)
    await one.put("out", b"third")
    await until(lambda: one.count(UserOutcome.TAKEN_OFF) == 2)
    assert await other.bodies("in") == [b"second"]


async def test_a_node_that_has_just_started_knows_its_inbox_before_anything_passes(
    start: Start, server: Server
) -> None:
    """Check that a node knows its inbox before any message passes after its start.

    Otherwise the first messages would bypass the inbox.
    """
    node = await start(server, b"a")
    await node.declare("in", bindings=INBOX)
    await node.close()
    again = Member(server.url, b"a")
    again.store.start_serving()
    again.users.start()
    safe: list[bytes] = []
    for body in numbered(30):
        again.users.user_sink.received(body, lambda body=body: safe.append(body))  # type: ignore[misc]
    await until(lambda: safe == numbered(30))
    assert await again.bodies("in") == numbered(30)
    assert again.count(UserOutcome.PASSED_ON) == 0
    await again.close()


async def test_oversized_outbox_message_is_a_dead_letter(start: Start, server: Server) -> None:
    """Check that an oversized outbox message is a dead letter: our own messages have less than 2^14 octets (2.1)."""
    nodes = await members(start, server, 2)
    ring = Ring(nodes)
    ring.links[0].keeps = ring.links[1].keeps = True
    await nodes[0].declare("out", bindings=OUTBOX)
    large = bytes(MAX_USER_SENT + 1)
    fits = b"x" * MAX_USER_SENT
    await nodes[0].put("out", b"before", large, large, fits, large, b"behind")
    await until(lambda: sum(node.count(UserOutcome.TAKEN_OFF) for node in nodes) == 3)
    await ring.settle_down()
    assert sorted(ring.links[0].carried) == sorted([b"before", fits, b"behind"])
    assert [(len(letter.body), letter.reason) for letter in await nodes[0].dead("out")] == [
        (len(large), "too_large_for_ring")
    ] * 3


async def test_message_of_a_dead_node_leaves_the_ring(start: Start, server: Server) -> None:
    """Check that a dead node's message leaves the ring: after max_laps passes, no node claims it (5.7)."""
    nodes = await members(start, server, 4, max_laps=3)
    await nodes[0].declare("out", bindings=OUTBOX)
    await until(lambda: sum(node.users.bindings.outbox is not None for node in nodes) == 4)
    ring = Ring(nodes)
    for link in ring.links:
        link.cut()
    await nodes[0].put("out", *numbered(30))
    await until(lambda: sum(node.count(UserOutcome.BEGUN) for node in nodes) == 30)
    dead = next(node for node in nodes if node.count(UserOutcome.BEGUN))
    before, behind = nodes[nodes.index(dead) - 1], nodes[(nodes.index(dead) + 1) % 4]
    for link in ring.links:
        link.mend()  # each goes around once, and the node dies with the knowledge that it sent it
    await until(lambda: behind.count(UserOutcome.PASSED_ON) >= 5)
    await dead.close()
    for link in ring.links:
        if link.source is dead:
            link.cut()
        elif link.goal is dead:
            link.cut()
            link.mend(behind)
    rest = [node for node in nodes if node is not dead]
    await until(lambda: all(len(node.users.user_sink) == 0 for node in rest))
    for node in rest:
        await until(node.has_nothing_to_send)
    laps = sum(node.count("laps") for node in rest)
    asked = sum(node.count("nobody_claims") for node in rest)
    assert laps + dead.count(UserOutcome.TAKEN_OFF) <= 30
    assert asked >= laps
    assert before is not dead


async def test_frame_without_id_leaves_the_ring(start: Start, server: Server) -> None:
    """Check that a frame without id leaves the ring after some passes (5.5).

    No node serves its queue, and its sender is dead.
    """
    nodes = await members(start, server, 3)
    ring = Ring(nodes)
    payload = encode_frame(Frame(Operation.PUSH, b"original", b"missing", b"x", NO_ID))
    safe = asyncio.Event()
    nodes[1].users.user_sink.received(payload, safe.set)
    await safe.wait()
    await until(lambda: sum(node.count("laps") for node in nodes) == 1)
    await ring.settle_down()


async def test_messages_without_a_link_survive_a_restart(start: Start, server: Server) -> None:
    """Check that messages without a link survive a restart in the store, in order (4.5)."""
    node = await start(server, b"a")
    for body in numbered(600):
        node.users.user_sink.received(body, lambda: None)
    await until(lambda: node.count(UserOutcome.PASSED_ON) == 600)
    await node.close()
    again = await start(server, b"a")
    other = await start(server, b"b")
    ring = Ring([again, other])
    ring.links[0].keeps = True
    await until(lambda: len(ring.links[0].carried) >= 600)
    assert ring.links[0].carried[:600] == numbered(600)


async def test_broken_links_lose_no_messages_and_keep_order(start: Start, server: Server) -> None:
    """Check that broken links lose no messages: unanswered ones are sent again in order (2.2)."""
    nodes = await members(start, server, 2)
    ring = Ring(nodes, window=16)
    link = ring.links[0]
    link.keeps = True
    for number, body in enumerate(numbered(500)):
        nodes[0].users.user_sink.received(body, lambda: None)
        if number % 50 == 0:
            await asyncio.sleep(0)
            link.cut(lost=number % 7)
            link.mend()
    wanted = set(numbered(500))  # besides questions about them, which no node takes off (5.7)
    await until(lambda: wanted.issubset(link.carried))
    firsts = list(dict.fromkeys(body for body in link.carried if body in wanted))
    assert firsts == numbered(500)


async def test_messages_are_answered_in_order(start: Start, server: Server) -> None:
    """Check that messages are answered in order, whether or not they need the store (2.2)."""
    node = await start(server, b"a")
    await node.declare("here")
    results: list[int] = []
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
        node.users.user_sink.received(payload, lambda number=number: results.append(number))  # type: ignore[misc]
    assert results == [], "answered before it was received"
    await until(lambda: len(results) == len(frames))
    assert results == list(range(len(frames)))
    assert isinstance(node.store.registry, Registry)
