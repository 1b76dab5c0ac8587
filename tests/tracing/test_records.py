"""Stored records: unchanged but for traced messages (docs/tracing.md)."""

from __future__ import annotations

import msgpack
import pytest

from services.store import Queue
from services.store.model import records
from services.store.model.operations import CommitPart
from services.store.model.trace_context import KEY, fresh, hop, of_record, parse
from tests.servers import Client, Server
from tests.tracing.collector import Collector
from tests.tracing.stores import TracedStore, traced_store

MOST = 1000
ATTRIBUTE = len(records.encode(b"", {KEY: fresh().header})) - records.HEAD.size
BODIES = [b"message %d" % number for number in range(300)]


def entries(server: Server, queue: Queue) -> list[tuple[int, bytes]]:
    """Return the stream's entries: number of messages, and records."""
    client = Client(server.port)
    try:
        found = [
            dict(zip(f[::2], f[1::2], strict=True)) for _, f in client.call("XRANGE", queue.keys[0], "-", "+")
        ]
    finally:
        client.close()
    return [(int(entry[b"n"]), entry[b"b"]) for entry in found]


async def put_into(store: TracedStore, name: str) -> Queue:
    queue = await store.queue(name)
    await store.put(queue, *BODIES)
    return queue


async def test_unsampled_records_are_unchanged(server: Server, collector: Collector) -> None:
    async with (
        traced_store(server.url, None) as plain,
        traced_store(server.url, collector.endpoint, ratio=0) as traced,
    ):
        assert entries(server, await put_into(plain, "a")) == entries(server, await put_into(traced, "b"))
    assert collector.spans() == []


async def test_other_records_of_a_sampled_run_are_unchanged(server: Server, collector: Collector) -> None:
    """Traced records begin their entries, so others need not be checked."""
    async with traced_store(server.url, collector.endpoint, ratio=0.05) as store:
        queue = await put_into(store, "q")
        while not any(blob[0] for _, blob in entries(server, queue)):  # with a chance of 2e-7
            await store.put(queue, *BODIES)
        found = entries(server, queue)
        taken = [record for count, blob in found for record in records.split(blob, count)]
        assert [records.decode(record).body for record in taken] == BODIES * (len(taken) // len(BODIES))
        inside = [record for count, blob in found for record in records.split(blob, count)[1:]]
        before = [blob for _, blob in found]
        for record in inside:
            if record[0]:  # then all before it in its entry are traced, too
                (blob,) = [blob for blob in before if record in blob]
                assert blob[0]
        plain = [record for record in taken if not record[0]]
        assert plain == [records.encode(records.decode(record).body) for record in plain]
        for record in taken:
            if record[0]:
                assert records.decode(record).attributes.keys() == {KEY}
                assert of_record(record) is not None


async def test_message_without_room_gets_no_context(server: Server, collector: Collector) -> None:
    """The queue's bound fits the message, but not its context."""
    async with traced_store(server.url, collector.endpoint) as store:
        queue = await store.queue("small", maxBytes=100)
        await store.put(queue, bytes(100))
        assert entries(server, queue) == [(1, records.encode(bytes(100)))]


@pytest.mark.parametrize("size", [MOST, MOST - 1, MOST - ATTRIBUTE + 1, MOST - ATTRIBUTE])
async def test_traced_message_fits_if_the_untraced_does(
    server: Server, collector: Collector, size: int
) -> None:
    """docs/tracing.md: alone, in a commit, as a copy of a SEND, or from another system."""
    async with traced_store(server.url, collector.endpoint) as store:
        alone, together, copied, came = [
            await store.queue(name, maxBytes=MOST) for name in ("alone", "together", "copied", "came")
        ]
        record = records.encode(bytes(size))
        await store.put(alone, bytes(size))
        async_client = await store.async_client(together)
        halves = [records.encode(bytes(size // 2)), records.encode(bytes(size - size // 2))]
        await async_client.commit("t", [CommitPart(together, [], [half], "test") for half in halves])
        tracing = store.get_domain("main").tracing
        assert tracing is not None
        (_, copy), *_ = tracing.send([(copied, record)], store.client(), "test")[0]
        assert store.trace_propagation is not None
        for queue, made in (
            (copied, copy),
            (came, store.trace_propagation.arrived(came, record, hop("ring", b"7"))),
        ):
            assert await (await store.async_client(queue)).publish(queue, [made], "test") == []
            assert (made == record) is (size > MOST - ATTRIBUTE)
        for queue, bodies in ((alone, 1), (together, 2), (copied, 1), (came, 1)):
            assert (await store.listing.stats(queue))["ready"] == bodies
        traced = [blob[0] for _, blob in entries(server, alone)]
        assert bool(any(traced)) is (size <= MOST - ATTRIBUTE)


async def test_carried_contexts_do_not_use_up_samples(server: Server, collector: Collector) -> None:
    """Check that messages with an unsampled context do not use up the rate limit."""
    quiet = f"00-{1:032x}-{2:016x}-00"
    async with traced_store(server.url, collector.endpoint, most_per_s=5) as store:
        queue = await store.queue("q")
        await store.put(queue, *BODIES[:50], traceparent=quiet)
        await store.put(queue, b"mine")
        (_, blob) = entries(server, queue)[-1]
        assert of_record(blob) is not None
        assert records.decode(blob).body == b"mine"


@pytest.mark.parametrize("is_traced", [False, True])
async def test_attributes_without_context_are_not_decoded(
    server: Server, collector: Collector, monkeypatch: pytest.MonkeyPatch, is_traced: bool
) -> None:
    """Most messages with attributes have no context. An untraced edge does not check."""
    endpoint = collector.endpoint if is_traced else None
    async with traced_store(server.url, endpoint, ratio=0) as store:
        queue = await store.queue("q")
        async_client = await store.async_client(queue)
        run = [records.encode(b"%d" % number, {"colour": "red"}) for number in range(50)]
        with monkeypatch.context() as watched:
            watched.setattr(msgpack, "unpackb", _decoded)
            assert await async_client.publish(queue, run, "test") == []
            got = await async_client.take(queue, 50)
            await async_client.settle(got)
        assert [record for delivery in got for record in delivery.records()] == run


def _decoded(_: bytes) -> None:
    raise AssertionError("attributes are decoded")


async def test_carried_context_is_followed(server: Server, collector: Collector) -> None:
    """Check this with ratio 0; a context that is not sampled is not traced."""
    theirs, quiet = fresh(), parse(f"00-{1:032x}-{2:016x}-00")
    assert quiet is not None
    async with traced_store(server.url, collector.endpoint, ratio=0) as store:
        queue = await store.queue("q")
        await store.put(queue, b"one", traceparent=theirs.header, colour="red")
        await store.put(queue, b"two", traceparent=quiet.header)
        await store.put(queue, b"three", traceparent="nonsense")
        async_client = await store.async_client(queue)
        got = await async_client.take(queue, 3)
        await async_client.settle(got)
        contents = [records.decode(record) for d in got for record in d.records()]
    assert [content.body for content in contents] == [b"one", b"two", b"three"]
    assert contents[0].attributes["colour"] == "red"
    assert [content.attributes[KEY] for content in contents[1:]] == [quiet.header, "nonsense"]
    sent, received, settled = collector.spans()
    assert {span.trace_id for span in (sent, received, settled)} == {f"{theirs.trace_id:032x}"}
    assert sent.parent_id == f"{theirs.span_id:016x}"
    assert contents[0].attributes[KEY] == f"00-{sent.trace_id}-{sent.span_id}-01"
