"""Appending to the log: numbers, order and refusals (docs/store.md; pubsub.md 3, 4.4)."""

import asyncio
import random

import pytest

from services.store import INTERNAL_CLIENT, PipeSettings, Queue, QueueSpec, Source
from services.store.log.log import START, Place
from services.store.model.errors import AckLevelLost, BindingsChanged, OutcomeUnknown, StoreEvicts, StoreFull
from services.store.model.operations import Send
from services.store.pipeline.encoding import LOG_ENTRY
from tests.proxy import Proxy
from tests.servers import Client, Server
from tests.store.desk import Desk, encode, until
from tests.store.lane import DATASET, Lane, begin
from tests.store.logbook import Logbook, block, check_numbering, logbook
from tests.store.pipeline.test_replays import Answers


async def test_numbers_are_consecutive_from_1(book: Logbook) -> None:
    """Check that numbers are consecutive from 1 (pubsub.md 4.4)."""
    assert await book.head() == START
    for count in (1, 3, 1, 200):
        await book.send(*(b"t %d" % i for i in range(count)))
    entries = await book.entries()
    state = await book.state()
    assert [(e.first, e.messages) for e in entries] == [(1, 1), (2, 3), (5, 1), (6, 200)]
    assert {e.origin for e in entries} == {b"%b %b" % (state.store, state.incarnation)}
    assert not any(e.bridged for e in entries)
    check_numbering(entries)
    assert state.held[state.store, state.incarnation].spans == ((1, 205),)
    assert state.head == await book.head() == Place(entries[0].place.era, 205)
    assert state.gone == {}
    assert await book.counter("sent") == 205


async def test_sends_of_many_connections_share_entries(book: Logbook) -> None:
    """Check that sends of many connections share entries in the order of each connection (pubsub.md 3.4)."""
    sources = [Source(INTERNAL_CLIENT) for _ in range(20)]
    mixed = [(number, source) for number in range(50) for source in sources]
    lines = [b"t%d %d" % (sources.index(source), number) for number, source in mixed]
    await asyncio.gather(*(book.sending(line, source=s) for line, (_, s) in zip(lines, mixed, strict=True)))
    entries = await book.entries()
    assert len(entries) == 1
    assert await book.lines() == lines
    assert check_numbering(entries) == {entries[0].origin: 1001}


async def test_entry_has_up_to_64_kib_of_lines(book: Logbook) -> None:
    """Check that lines share entries of up to 64 KiB, and that a longer line has its own entry."""
    rnd = random.Random(4)
    sizes = [1, LOG_ENTRY + 5, 7, *(rnd.randrange(20_000) for _ in range(60)), LOG_ENTRY, 3]
    lines = [b"t %d." % i + b"x" * size for i, size in enumerate(sizes)]
    await asyncio.gather(*(book.sending(line, source=Source(INTERNAL_CLIENT)) for line in lines))
    entries = await book.entries()
    assert await book.lines() == lines
    assert all(len(e.block) <= LOG_ENTRY or e.messages == 1 for e in entries)
    assert len(entries) < 30
    check_numbering(entries)


async def test_any_octets_are_kept(book: Logbook) -> None:
    every = bytes(range(11, 256))
    await book.send(b"\xff\xfe " + every)
    assert (await book.entries())[0].block == b"SEND \xff\xfe " + every + b"\n"


async def test_head_is_exact(book: Logbook, desk: Desk) -> None:
    """Check that the head includes earlier answered sends, and no sends begun after its answer (pubsub.md 3.2)."""
    other = await desk.another().__aenter__()
    async with logbook(other) as there:
        for number in range(20):
            here, away = (book, there) if number % 2 else (there, book)
            await here.send(b"before %d" % number)
            head = await away.head()
            await here.send(b"after %d" % number)
            assert (await book.lines(head)) == [b"after %d" % number]


async def test_head_keeps_the_order_of_its_connection(book: Logbook) -> None:
    """Check that the head keeps its place in its connection, in one call with other connections' sends."""
    asked = []
    source = Source(INTERNAL_CLIENT)
    for number in range(10):
        asked.append(book.sending(b"mine %d" % number, source=source))
        asked.append(book.asking_head(source))
        asked.append(book.sending(b"other %d" % number, source=Source(INTERNAL_CLIENT)))
    answers = await asyncio.gather(*asked)
    for number, place in enumerate(answers[1::3]):
        era, _, serial = place.partition("-")
        mine = [x for x in await book.lines(Place(int(era), int(serial))) if x.startswith(b"mine")]
        assert mine == [b"mine %d" % i for i in range(number + 1, 10)]


async def test_reading_stops_at_a_place(book: Logbook) -> None:
    for number in range(5):
        await book.send(b"t %d" % number)
    places = [e.place for e in await book.entries()]
    between = await book.log.read(places[0], places[3])
    assert [e.place for e in between] == places[1:4]
    assert await book.log.read(places[3], places[3]) == []


async def test_send_by_other_bindings_is_refused(book: Logbook, desk: Desk) -> None:
    await desk.queue("bound", bindings={"text": {"subscribe": ["t"]}})
    with pytest.raises(BindingsChanged):
        await book.send(b"t x")
    assert await book.entries() == []
    await book.refresh()
    await book.send(b"other x")


# refusals


@pytest.mark.parametrize(
    ("setting", "refusal"),
    [
        ({"maxmemory": "above what is used"}, StoreFull),
        ({"maxmemory_policy": "allkeys-lru"}, StoreEvicts),
        ({"appendonly": "no"}, AckLevelLost),
    ],
)
async def test_store_that_cannot_keep_the_level_refuses_sends(
    book: Logbook, server: Server, setting: dict[str, str], refusal: type[Exception]
) -> None:
    """Check that a refused SEND is reported to the sender and not stored (pubsub.md 3.1)."""
    await book.send(b"t before", b"t " + b"x" * 4_000_000)
    if "maxmemory" in setting:
        await until(lambda: buffers_are_small(server))
        setting = {"maxmemory": str(int(server.info("memory")["used_memory"]) * 6 // 5)}
    with server.configured(**setting):
        await until(lambda: refused(book, refusal))
        count = await book.counter("serial")
        with pytest.raises(refusal):
            await book.send(b"t x")
        with pytest.raises(refusal):
            await book.accept()
        assert await book.counter("serial") == count
        assert await book.head()
    await until(lambda: taken(book))


async def buffers_are_small(server: Server) -> bool:
    """Return whether the server has freed a client's buffers of a long line, which takes seconds."""
    return int(server.info("memory")["mem_clients_normal"]) < 1_000_000


async def refused(book: Logbook, refusal: type[Exception]) -> bool:
    try:
        await book.send(b"t x")
    except refusal:
        return True
    return False


async def taken(book: Logbook) -> bool:
    try:
        await book.send(b"t x")
    except (StoreFull, StoreEvicts, AckLevelLost):
        return False
    return True


async def test_log_of_level_memory_needs_no_file(book: Logbook, server: Server) -> None:
    await book.log.domain.function("log_declare", [book.log.keys.log[1]], "memory", 1000, 1000)
    with server.configured(appendonly="no"):
        await book.send(b"t x")
        assert await book.lines() == [b"t x"]


async def test_unanswered_send_has_an_unknown_outcome(own_server: Server) -> None:
    """Check that an unanswered send has an unknown outcome and is done at most once (pubsub.md 3.1)."""
    hasty = PipeSettings(patience_s=0.3, reply_timeout_s=0.2, call_deadline_s=20.0, request_timeout_s=1.0)
    async with Desk(own_server, pipe=hasty) as desk, logbook(desk) as book:
        await book.send(b"t 1")
        own_server.stop()
        asked = [book.sending(b"t 2"), book.asking_head(), book.sending(b"t 3")]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert {type(answer) for answer in answers} == {OutcomeUnknown}
        own_server.cont()
        await until(lambda: desk.pipe.trouble is None)
        await book.send(b"t 4")
        assert await book.lines() == [b"t 1", b"t 2", b"t 3", b"t 4"]


async def test_send_with_lost_reply_is_stored_once(own_server: Server) -> None:
    async with (
        Proxy(own_server.port) as proxy,
        Desk(own_server),
        Desk(proxy.url) as desk,
        logbook(desk) as book,
    ):
        queue = await book.bound("bound", "b")
        proxy.lose_replies_to = b"ps1_work"
        asked = [book.sending(b"a 1", b"a 2"), book.sending(b"b 3", to=(queue,)), book.sending(b"a 4")]
        await until(lambda: proxy.lost)
        proxy.lose_replies_to = b""
        await asyncio.gather(*asked)
        assert await book.lines() == [b"a 1", b"a 2", b"b 3", b"a 4"]
        assert await desk.drain(queue) == [b"3"]


# repeated calls


def ask(lane: Lane, send: Send) -> None:
    """Send by the operation; a Lane's own `send` makes the call."""
    lane.log.send(lane.source, send, 0)


def test_repeated_call_appends_nothing(client: Client) -> None:
    """Check this for a call with lines, copies, a refused send and a head (see pipeline/test_replays.py)."""
    spec = QueueSpec(ack_level="fsync", max_length=1, bindings={"text": {"subscribe": ["b"]}})
    queue = Queue("bound", "q1", "main", "test", spec)
    begin(client, queue)
    lane = Lane(client, "one")
    version = client.call("HGET", lane.keys.log[1], "bindings").decode()
    answers = Answers()
    (copy,) = encode(b"x")
    ask(lane, Send(block(b"a 1", b"a 2"), 2, [], "o", version, answers))
    ask(lane, Send(block(b"b 3"), 1, [(queue, copy)], "o", version, answers))
    ask(lane, Send(block(b"b 4"), 1, [(queue, copy)], "o", version, answers))
    ask(lane, Send(block(b"c 5"), 1, [], "o", "other", answers))
    lane.log.head(lane.source, answers)
    answer = lane.send()
    kept = [client.call("XRANGE", lane.keys.log[0], "-", "+"), client.call("HGETALL", lane.keys.log[1])]
    assert lane.again() == lane.again() == answer
    assert [
        client.call("XRANGE", lane.keys.log[0], "-", "+"),
        client.call("HGETALL", lane.keys.log[1]),
    ] == kept
    assert client.call("XLEN", queue.keys[0]) == 1
    assert [type(t).__name__ for t in answers] == [
        "NoneType",
        "NoneType",
        "QueueFull",
        "BindingsChanged",
        "str",
    ]
    assert len(kept[0]) == 1  # 1 to 3 share an entry
    assert answers[-1].endswith("-3")


def test_late_send_is_not_stored(client: Client) -> None:
    begin(client)
    client.call("SET", "ps:{main}:epoch", DATASET)
    lane = Lane(client, "one")
    answers = Answers()
    ask(lane, Send(block(b"a 1"), 1, [], "o", "0", answers))
    with pytest.raises(Exception, match="LATE"):
        lane.send(deadline_ms=1)
    assert client.call("EXISTS", *lane.keys.log) == 0
