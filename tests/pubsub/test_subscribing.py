"""SEND and SUBSCRIBE with a live edge: which messages are delivered, when and how (pubsub.md 1-3)."""

from __future__ import annotations

import asyncio

import pytest

from tests.pubsub.conftest import Start
from tests.pubsub.live import LiveEdge
from tests.servers import Server


async def test_one_message_for_each_subscription_that_matches(edge: LiveEdge) -> None:
    """Check that each matching subscription gets the message, in their order, by its identifier (3.3)."""
    subscriber, sender = await edge.client(), await edge.client()
    for identifier, pattern in (
        (b"3", b"ab*"),
        (b"1", b"abc"),
        (b"002", b"a*"),
        (b"2", b"abcd"),
        (b"9", b"abc*"),
    ):
        await subscriber.subscribe(identifier, pattern)
    await sender.publish(b"abc", b"x")
    await sender.publish(b"abcd", b"y")
    first = [b"MESSAGE 3 x\n", b"MESSAGE 1 x\n", b"MESSAGE 002 x\n", b"MESSAGE 9 x\n"]
    second = [b"MESSAGE 3 y\n", b"MESSAGE 002 y\n", b"MESSAGE 2 y\n", b"MESSAGE 9 y\n"]
    assert await subscriber.lines(8) == first + second
    await subscriber.nothing_more()


async def test_the_sender_gets_its_own_messages(edge: LiveEdge) -> None:
    """Check that the sender gets its own messages (3.5)."""
    client = await edge.client()
    await client.subscribe(b"1", b"x")
    await client.send(b"SEND x a\nSEND x b\n")
    lines = await client.lines(4)
    assert sorted(lines) == [b"MESSAGE 1 a\n", b"MESSAGE 1 b\n", b"OK\n", b"OK\n"]
    assert lines.index(b"MESSAGE 1 a\n") < lines.index(b"MESSAGE 1 b\n")


async def test_only_what_is_sent_after_the_moment_of_subscription(edge: LiveEdge) -> None:
    """Check that only messages sent after the subscription are delivered, also on one connection (3.2)."""
    client = await edge.client()
    await client.send(b"SEND x before\nSUBSCRIBE 1 x\nSEND x after\n")
    assert sorted(await client.lines(4)) == [b"MESSAGE 1 after\n", b"OK\n", b"OK\n", b"OK\n"]
    await client.nothing_more()


async def test_the_moment_is_the_stores_also_at_another_edge(server: Server, start: Start) -> None:
    """Check that the store determines the moment of a subscription, also at another edge (3.2, 4.2).

    Answered before the SUBSCRIBE was sent: not delivered; begun after its OK: delivered, at once.
    """
    one, other = await start(server), await start(server)
    sender, subscriber = await one.client(), await other.client()
    for turn in range(100):
        await sender.publish(b"x", b"old %d" % turn)
        await subscriber.subscribe(b"%d" % turn, b"x")
        await sender.publish(b"x", b"new %d" % turn)
        assert await subscriber.line() == b"MESSAGE %d new %d\n" % (turn, turn)
        assert await subscriber.ask(b"UNSUBSCRIBE %d\n" % turn) == b"OK\n"


async def test_unsubscribed_is_silent_and_its_identifier_free(edge: LiveEdge) -> None:
    """Check that after UNSUBSCRIBE nothing is delivered and the identifier is free (2.2, 2.3)."""
    client, sender = await edge.client(), await edge.client()
    await client.subscribe(b"1", b"x")
    await client.subscribe(b"2", b"x*")
    assert await client.ask(b"SUBSCRIBE 1 y\n") == b"ERROR identifier in use\n"
    await client.subscribe(b"01", b"y")  # another text, another identifier
    assert await client.ask(b"UNSUBSCRIBE 1\n") == b"OK\n"
    assert (await client.ask(b"UNSUBSCRIBE 1\n")).startswith(b"ERROR ")
    await sender.publish(b"x", b"a")
    assert await client.line() == b"MESSAGE 2 a\n"
    await client.subscribe(b"1", b"y")
    await sender.publish(b"y", b"b")
    assert sorted(await client.lines(2)) == [b"MESSAGE 01 b\n", b"MESSAGE 1 b\n"]
    await client.nothing_more()


async def test_subscribe_and_unsubscribe_in_one_go(edge: LiveEdge) -> None:
    """Check that SUBSCRIBE and UNSUBSCRIBE sent together happen in sequence, before the store has answered (2.2)."""
    client, sender = await edge.client(), await edge.client()
    await client.send(b"SUBSCRIBE 1 x\nUNSUBSCRIBE 1\nSUBSCRIBE 1 y\nUNSUBSCRIBE 7\nSUBSCRIBE 1 z\n")
    assert await client.lines(3) == [b"OK\n"] * 3
    assert (await client.line()).startswith(b"ERROR no subscription")
    assert await client.line() == b"ERROR identifier in use\n"
    await sender.publish(b"x", b"a")
    await sender.publish(b"y", b"b")
    assert await client.line() == b"MESSAGE 1 b\n"
    await client.nothing_more()


async def test_line_ends_follow_the_clients_last_line(edge: LiveEdge) -> None:
    """Check that line ends follow the client's last line, also for messages; LF before any (1.1)."""
    client, sender = await edge.client(), await edge.client()
    assert await client.ask(b"SUBSCRIBE 1 x\r\n") == b"OK\r\n"
    await sender.publish(b"x", b"a")
    assert await client.line() == b"MESSAGE 1 a\r\n"
    assert await client.ask(b"PING\n") == b"OK\n"
    await sender.publish(b"x", b"b")
    assert await client.line() == b"MESSAGE 1 b\n"
    assert await client.ask(b"nonsense\r\n") == (
        b"ERROR unknown command; known: SEND tag message, SUBSCRIBE id pattern, UNSUBSCRIBE id, PING, QUIT\r\n"
    )
    await sender.publish(b"x", b"c")
    assert await client.line() == b"MESSAGE 1 c\r\n"


async def test_beyond_ascii(edge: LiveEdge) -> None:
    """Check text beyond ASCII: a UTF-8 listener accepts it; ASCII subscribers get it escaped (2.1, 5.3)."""
    plain, wide = await edge.client("text"), await edge.client("utf8")
    assert (await plain.ask("SEND x grün\n".encode())).startswith(b"ERROR ")
    assert (await wide.ask(b"SEND x \xff\n")).startswith(b"ERROR ")
    await plain.subscribe(b"1", b"x")
    await wide.subscribe(b"1", b"x")
    sender = await edge.client("utf8")
    await sender.publish(b"x", "a\\b grün".encode())
    await sender.publish(b"x", b"a\\b")
    assert await wide.lines(2) == ["MESSAGE 1 a\\b grün\n".encode(), b"MESSAGE 1 a\\b\n"]
    assert await plain.lines(2) == [rb"MESSAGE 1 a\\b gr\xc3\xbcn" + b"\n", b"MESSAGE 1 a\\b\n"]


async def test_a_strict_listener_has_no_additions(edge: LiveEdge) -> None:
    """Check that a strict listener has no additions (2.2)."""
    client = await edge.client("strict")
    await client.subscribe(b"1", b"x")
    for line in (b"UNSUBSCRIBE 1\n", b"PING\n", b"QUIT\n"):
        assert await client.ask(line) == (
            b"ERROR unknown command; known: SEND tag message, SUBSCRIBE id pattern\n"
        )
    await (await edge.client()).publish(b"x", b"still there")
    assert await client.line() == b"MESSAGE 1 still there\n"


async def test_quit_is_answered_after_all_before_it(edge: LiveEdge) -> None:
    """Check that QUIT is answered after all earlier requests (2.2)."""
    client = await edge.client()
    await client.send(b"SEND x 1\nSEND x 2\nQUIT\nSEND x 3\n")
    assert await client.lines(3) == [b"OK\n"] * 3
    await client.closed()


async def test_a_line_too_long_costs_only_itself(server: Server, start: Start) -> None:
    """Check that a line that is too long affects only itself: it is not buffered, and the connection stays (1.2)."""
    edge = await start(server, max_line_bytes=100)
    client = await edge.client()
    await client.send(b"SEND x " + b"a" * 93 + b"\n")
    assert await client.line() == b"OK\n"
    await client.send(b"SEND x " + b"a" * 94 + b"\nPING\n")
    assert await client.lines(2) == [b"ERROR line too long\n", b"OK\n"]
    for _ in range(50):
        await client.send(b"b" * 100_000)
    assert edge.budget.total <= 200
    await client.send(b"\nPING\n")
    assert await client.lines(2) == [b"ERROR line too long\n", b"OK\n"]


async def test_bad_lines_among_good_ones(edge: LiveEdge) -> None:
    """Check that bad lines among good ones are answered in their places, and good ones are not lost (2.1)."""
    client, subscriber = await edge.client(), await edge.client()
    await subscriber.subscribe(b"1", b"x")
    bad = [
        b"SEND",
        b"SEND x",
        b"SEND  x m",
        b"SEND a*b m",
        b"SUBSCRIBE 1 *",
        b"",
        b" ",
        b"\xff\x00",
        b"send x m",
    ]
    await client.send(b"".join(b"SEND x %d\n%b\n" % (n, line) for n, line in enumerate(bad)))
    for _ in bad:
        assert await client.line() == b"OK\n"
        assert (await client.line()).startswith(b"ERROR ")
    assert await subscriber.lines(len(bad)) == [b"MESSAGE 1 %d\n" % n for n in range(len(bad))]
    assert sum(edge.refusals().values()) == len(bad)


async def test_half_closed_connection_is_answered_and_closed(edge: LiveEdge) -> None:
    """Check that a client that sends FIN is answered and closed, also a subscriber (1.3)."""
    client, subscriber = await edge.client(), await edge.client()
    await subscriber.subscribe(b"1", b"x")
    await client.send(b"SUBSCRIBE 1 x\nSEND x 1\nSEND x 2\nSEN")
    client.half_close()
    lines = [line async for line in client.reader]
    assert [line for line in lines if line == b"OK\n"] == [b"OK\n"] * 3
    assert sum(line.startswith(b"ERROR ") for line in lines) == 1
    assert await subscriber.lines(2) == [b"MESSAGE 1 1\n", b"MESSAGE 1 2\n"]
    assert edge.routed == 1


async def test_an_unfinished_line_closes_after_its_time(server: Server, start: Start) -> None:
    """Check that an incomplete line closes after its timeout (1.4)."""
    edge = await start(server, request_timeout_s=0.2)
    client = await edge.client()
    await client.send(b"PING\nSEND x")
    assert await client.line() == b"OK\n"
    await client.closed()
    assert edge.refusals()["request_timeout"] == 1


async def test_no_more_subscriptions_than_allowed(server: Server, start: Start) -> None:
    """Check that the number of subscriptions is limited (2.4)."""
    edge = await start(server, max_subscriptions=2)
    client = await edge.client()
    await client.subscribe(b"1", b"x")
    await client.subscribe(b"2", b"x")
    assert (await client.ask(b"SUBSCRIBE 3 x\n")).startswith(b"ERROR no more than 2 subscriptions")
    assert await client.ask(b"UNSUBSCRIBE 1\n") == b"OK\n"
    await client.subscribe(b"3", b"x")
    assert edge.refusals()["too_many_subscriptions"] == 1


async def test_all_subscribers_of_a_store_see_one_order(server: Server, start: Start) -> None:
    """Check that all subscribers of a store see one order over all tags, at every edge (3.4).

    Each sender's messages keep their order.
    """
    edges = [await start(server), await start(server)]
    subscribers = [await edge.client() for edge in edges for _ in range(2)]
    for subscriber, pattern in zip(subscribers, (b"t*", b"t*", b"t1*", b"t*"), strict=True):
        await subscriber.subscribe(b"1", pattern)
    senders = [await edge.client() for edge in edges for _ in range(2)]
    number = 300
    for name, sender in enumerate(senders):
        await sender.send(b"".join(b"SEND t%d%d %d %d\n" % (n % 2, n % 7, name, n) for n in range(number)))
    for sender in senders:
        assert await sender.lines(number) == [b"OK\n"] * number
    seen = [await subscriber.lines(len(senders) * number) for subscriber in (subscribers[0], subscribers[1])]
    assert seen[0] == seen[1]
    for name in range(len(senders)):
        own = [int(line.split()[3]) for line in seen[0] if line.split()[2] == b"%d" % name]
        assert own == list(range(number))
    half = [line for line in seen[0] if int(line.split()[3]) % 2]
    assert await subscribers[2].lines(len(half)) == half


@pytest.mark.parametrize("number", [1, 500])
async def test_subscriptions_end_with_their_connection(edge: LiveEdge, number: int) -> None:
    client = await edge.client()
    await client.send(
        b"".join(b"SUBSCRIBE %d t%d%b\n" % (n, n, b"*" if n % 2 else b"") for n in range(number))
    )
    assert await client.lines(number) == [b"OK\n"] * number
    assert edge.routed == number
    client.close()
    async with asyncio.timeout(10):
        while edge.connections():  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert edge.routed == 0
