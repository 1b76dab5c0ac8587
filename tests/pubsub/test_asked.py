"""The text service can be asked through the store who subscribes to what (docs/operations.md, Who is connected)."""

from __future__ import annotations

from typing import Any

from services.store.processes.rpc_client import MOST_ITEMS, Answer
from tests.kit.authority import Authority
from tests.live import until
from tests.pubsub.conftest import Start
from tests.pubsub.live import LISTENERS, QUICK_LINKS, LiveEdge
from tests.pubsub.stores import NewServer, linked, store

WAIT_S = 30.0


async def ask(edge: LiveEdge, **args: Any) -> Answer:
    """Once it can be asked."""

    async def answered() -> Answer | None:
        found = await edge.tools.processes.inquire("subscriptions", args, WAIT_S)
        return found.answers[0] if found.answers else None

    answer: Answer = await until(answered)
    return answer


async def patterns(edge: LiveEdge, **args: Any) -> list[str]:
    return [item["pattern"] for item in (await ask(edge, **args)).items]


async def test_who_subscribes_to_what(edge: LiveEdge) -> None:
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


async def test_a_page_after_the_other(edge: LiveEdge) -> None:
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


async def test_a_place_that_is_no_number_is_refused(edge: LiveEdge) -> None:
    for skip in (-1, "1", None, True):
        assert (await ask(edge, skip=skip)).problem == "skip must be a whole number, 0 or more"


async def test_what_is_long_or_no_text_is_cut_and_shown(edge: LiveEdge) -> None:
    client = await edge.client("utf8")
    await client.subscribe(b"7" * 9_000, b"t" * 50_000 + b"*")
    (item,) = (await ask(edge)).items
    assert item["id"] == "7" * 256
    assert (item["pattern"], item["octets"]) == ("t" * 256 + "*", 50_001)
    other = await edge.client("utf8")
    await other.subscribe(b"1", b"<" + "é".encode() * 200)
    assert (await patterns(edge))[1] == "<" + "é" * 127 + "\\xc3"


async def test_very_many_are_told_as_far_as_there_is_room(edge: LiveEdge) -> None:
    """A MiB at a time, a page behind the other, while the edge serves others."""
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


async def test_one_that_is_behind_is_said_to_be(edge: LiveEdge) -> None:
    """3.6: served from the log, as it does not read."""
    slow, sender = await edge.client(receive_buffer=4096), await edge.client()
    await slow.subscribe(b"1", b"t")
    slow.stop_reading()
    block = b"".join(b"SEND t %b\n" % (b"x" * 60_000) for _ in range(20))

    async def is_behind() -> bool:
        await sender.send(block)
        assert set(await sender.lines(20)) == {b"OK\n"}
        return bool((await ask(edge)).items[0]["isBehind"])

    await until(is_behind)


async def test_a_link_is_told_at_both_ends_and_comes_back_when_it_is_closed(
    new_server: NewServer, start: Start, authority: Authority
) -> None:
    """Over TLS; the end that dialled it is no listener."""
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
    """Those that are open, once it can be asked."""

    async def answered() -> Answer | None:
        found = await edge.tools.processes.inquire("connections", {"listener": listener}, WAIT_S)
        return found.answers[0] if found.answers else None

    answer: Answer = await until(answered)
    return [item for item in answer.items if item["phase"] == "open"]
