"""Subscriptions can be listed through the store (docs/operations.md, Who is connected)."""

from __future__ import annotations

from typing import Any

from services.store.processes.rpc_protocol import MOST_ITEMS, Answer
from tests.kit.authority import Authority
from tests.live import until
from tests.pubsub.conftest import Start
from tests.pubsub.live import LISTENERS, QUICK_LINKS, LiveEdge
from tests.pubsub.stores import NewServer, linked, store

WAIT_S = 30.0


async def ask(edge: LiveEdge, **args: Any) -> Answer:
    """Ask as soon as the inspector answers."""

    async def answered() -> Answer | None:
        found = await edge.tools.processes.inquire("subscriptions", args, WAIT_S)
        return found.answers[0] if found.answers else None

    answer: Answer = await until(answered)
    return answer


async def patterns(edge: LiveEdge, **args: Any) -> list[str]:
    return [item["pattern"] for item in (await ask(edge, **args)).items]


async def test_lists_subscriptions(edge: LiveEdge) -> None:
    one, two = await edge.client(), await edge.client("utf8")
    assert (await ask(edge)).items == []
    await one.subscribe(b"1", b"news.*")
    await two.subscribe(b"3", b"n\xc3\xbc")
    await one.subscribe(b"2", b"x*")
    answer = await ask(edge)
    first, second, third = answer.items
    (connection,) = edge.connections("text")
    assert first == {
        **{"connection": connection.conn, "peer": str(connection.peer), "certificate": None},
        **{"id": "1", "pattern": "news.*", "octets": 6, "isBehind": False},
    }
    assert (second["pattern"], third["pattern"], third["id"]) == ("x*", "nü", "3")
    assert not answer.more
    assert await one.ask(b"UNSUBSCRIBE 1\n") == b"OK\n"
    assert await patterns(edge) == ["x*", "nü"]
    assert await patterns(edge, connection=connection.conn) == ["x*"]
    assert await patterns(edge, connection="1.1") == []
    one.close()

    async def has_gone() -> bool:
        return await patterns(edge) == ["nü"]

    await until(has_gone)


async def test_lists_subscriptions_in_pages(edge: LiveEdge) -> None:
    clients = [await edge.client() for _ in range(3)]
    for client in clients:
        await client.send(b"".join(b"SUBSCRIBE %d t%d\n" % (n, n) for n in range(10)))
        assert set(await client.lines(10)) == {b"OK\n"}
    whole = (await ask(edge)).items
    assert len(whole) == 30
    found = []
    while (page := await ask(edge, skip=len(found), limit=7)).more:
        found += page.items
    assert found + page.items == whole
    assert (await ask(edge, skip=30)).items == []


async def test_skip_that_is_not_a_number_is_refused(edge: LiveEdge) -> None:
    for skip in (-1, "1", None, True):
        assert (await ask(edge, skip=skip)).problem == "skip must be a whole number, 0 or more"


async def test_long_or_non_text_patterns_are_shortened(edge: LiveEdge) -> None:
    client = await edge.client("utf8")
    await client.subscribe(b"7" * 9_000, b"t" * 50_000 + b"*")
    (item,) = (await ask(edge)).items
    assert item["id"] == "7" * 256
    assert (item["pattern"], item["octets"]) == ("t" * 256 + "*", 50_001)
    other = await edge.client("utf8")
    await other.subscribe(b"1", b"<" + "é".encode() * 200)
    assert (await patterns(edge))[1] == "<" + "é" * 127 + "\\xc3"


async def test_very_many_subscriptions_are_listed_up_to_a_limit(edge: LiveEdge) -> None:
    """Check that very many subscriptions are listed up to a limit, while the edge serves others.

    Pages have a MiB each.
    """
    number, step = 20_000, 5_000
    clients = [await edge.client() for _ in range(4)]
    for at in range(0, number, step):
        client = clients[at % (4 * step) // step]
        lines = b"".join(b"SUBSCRIBE %d tag.%d\n" % (n, n) for n in range(at, at + step))
        await client.send(lines)
        assert set(await client.lines(step)) == {b"OK\n"}
    answer = await ask(edge)
    assert answer.more
    assert MOST_ITEMS // 300 < len(answer.items) < number
    last = await ask(edge, skip=number - 3)
    assert (len(last.items), last.more) == (3, False)
    seen = [item["id"] for item in answer.items]
    while len(seen) < number // 2:
        seen += [item["id"] for item in (await ask(edge, skip=len(seen))).items]
    assert len(set(seen)) == len(seen)


async def test_slow_subscriber_is_listed_as_behind(edge: LiveEdge) -> None:
    """Check that a slow subscriber, served from the log, is listed as behind (3.6)."""
    slow, sender = await edge.client(receive_buffer=4096), await edge.client()
    await slow.subscribe(b"1", b"t")
    slow.stop_reading()
    block = b"".join(b"SEND t %b\n" % (b"x" * 60_000) for _ in range(20))

    async def is_behind() -> bool:
        await sender.send(block)
        assert set(await sender.lines(20)) == {b"OK\n"}
        return bool((await ask(edge)).items[0]["isBehind"])

    await until(is_behind)


async def test_link_is_listed_at_both_ends_and_reconnects_after_close(
    new_server: NewServer, start: Start, authority: Authority
) -> None:
    """Check that a TLS link is listed at both ends and reconnects after close.

    The dialling end is not a listener.
    """
    listeners = {**LISTENERS, "link": {"port": 0, "serves": "links", "tls": authority.listener()}}
    one = await start(await store(new_server), listeners=listeners)
    link = {**QUICK_LINKS, "dial": {"tls": authority.dialler()}}
    two = await start(await store(new_server), neighbours=[one.link_address], link=link)
    await linked(two)
    (theirs,), (ours,) = await connections(one, "link"), await connections(two, "neighbour")
    assert (ours["peer"], ours["certificate"]) == (one.link_address, "localhost")
    assert theirs["receivedOctets"] > 0
    found = await two.tools.processes.inquire("close", {"id": ours["id"]}, WAIT_S)
    assert [answer.items for answer in found.answers] == [[{"id": ours["id"], "was": "closed"}]]

    async def is_another() -> bool:
        return [item["id"] != ours["id"] for item in await connections(two, "neighbour")] == [True]

    await until(is_another)
    await linked(two)
    assert two.refusals()["closed_by_operator"] == 1


async def connections(edge: LiveEdge, listener: str) -> list[dict[str, Any]]:
    """Return the open connections, once the inspector answers."""

    async def answered() -> Answer | None:
        found = await edge.tools.processes.inquire("connections", {"listener": listener}, WAIT_S)
        return found.answers[0] if found.answers else None

    answer: Answer = await until(answered)
    return [item for item in answer.items if item["phase"] == "open"]
