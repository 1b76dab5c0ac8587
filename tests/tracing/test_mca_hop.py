"""RQP/MCA has no place for a context, and no ids: both ends count what goes over a connection (docs/tracing.md)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import redis.asyncio

from protos.rqp_mca import Profile
from services.rqp.mca.hops import Passage
from services.store import Queue
from services.store.model import records
from services.store.model.clock import Clock
from services.store.model.trace_context import KEY, fresh
from services.store.pipeline.async_client import AsyncClient
from services.store.tracing.delivery_spans import DeliverySpans
from services.store.tracing.trace_propagation import TracePropagation
from tests.live import until
from tests.rqp.live import LiveEdge
from tests.rqp.mca.failing import failures
from tests.rqp.mca.peer import McaPeer, registered
from tests.stores import NewServer
from tests.tracing.collector import Collector, Seen
from tests.tracing.conftest import NewRecorder

NewEdge = Callable[..., Awaitable[LiveEdge]]
ANYWHERE = {"mca": {"host": "::", "port": 0}}
# a `window` of 1 is the document's (3.3)
WAYS = [
    (Profile.PACKED, True, 1),
    (Profile.OCTET, True, 8),
    (Profile.WORD, False, 1),
    (Profile.PACKED, False, 8),
]


@pytest.fixture
async def edge(new_server: NewServer, recorder: NewRecorder) -> AsyncIterator[NewEdge]:
    """Starts one on a store of its own; `ratio` is of its traces."""
    edges: list[LiveEdge] = []

    async def start(ratio: float = 1.0, **settings: Any) -> LiveEdge:
        edges.append(LiveEdge((await new_server()).url, **settings))
        edges[-1].recorder = recorder("rqp", ratio=ratio)
        return await edges[-1].start()

    yield start
    for each in reversed(edges):
        await each.close()
    for each in edges:
        each.check_no_fault_of_ours()


def to(*addresses: str, **peer: Any) -> dict[str, Any]:
    return {"peers": {"there": {"addresses": list(addresses), **peer}}}


async def put_as_a_client(edge: LiveEdge, queue: Queue, *bodies: bytes) -> None:
    """Through the edge's own store, which is traced."""
    pipe = edge.service.pipe(queue)
    await pipe.ready()
    assert (
        await AsyncClient(pipe).publish(queue, [len(body).to_bytes(4) + body for body in bodies], "test")
        == []
    )


async def are_there(collector: Collector, name: str, number: int) -> list[Seen]:
    found: list[Seen] = await until(lambda: len(seen := collector.of_name(name)) >= number and seen)
    assert len(found) == number
    return found


def hops_and_attempts(spans: list[Seen]) -> tuple[list[Seen], list[Seen]]:
    """Of those called `forward`: what the other end goes on from, and what is in the message's own trace."""
    return [span for span in spans if not span.parent_id], [span for span in spans if span.parent_id]


@pytest.mark.parametrize(("profile", "reliable", "window"), WAYS)
async def test_each_message_goes_on_there(
    edge: NewEdge, collector: Collector, profile: Profile, reliable: bool, window: int
) -> None:
    """Each has another size, by which it is known at both ends; all are put in at once, and share entries."""
    number = 40
    there = await edge()
    goal = await there.numbered("orders", 7)
    here = await edge(mca=to(there.address, profile=profile.value, window=window))
    away = await here.remote("away", reliable=reliable)
    await put_as_a_client(here, away, *(b"x" * size for size in range(number)))
    came = await are_there(collector, f"send {goal.name}", number)
    put = await are_there(collector, f"send {away.name}", number)
    hops, attempts = hops_and_attempts(await are_there(collector, f"forward {away.name}", 2 * number))
    by_id = {span.span_id: span for span in hops}
    attempt_of = {span.trace_id: span for span in attempts}
    for sent in put:
        attempt = attempt_of[sent.trace_id]
        assert attempt.attributes["penstock.outcome"] == ("confirmed" if reliable else "sent")
        assert attempt.attributes["network.peer.address"].startswith(there.address)
        ((trace, span),) = attempt.links
        assert by_id[span].trace_id == trace != sent.trace_id
        assert by_id[span].links == [(attempt.trace_id, attempt.span_id)]
        (gone_on,) = (found for found in came if found.parent_id == span)
        assert gone_on.trace_id == trace
        size = "messaging.message.body.size"
        assert gone_on.attributes[size] == sent.attributes[size]
    assert {span.attributes["penstock.origin"] for span in came} == {"mca 127.0.0.1"}


@pytest.mark.parametrize(("here_ratio", "there_ratio"), [(1.0, 0.25), (0.25, 1.0), (0.3, 0.3)])
async def test_both_decide_alike(
    edge: NewEdge, collector: Collector, here_ratio: float, there_ratio: float
) -> None:
    """The higher ratio traces whatever the lower one does; what neither names begins no trace on its way in."""
    number = 64
    there = await edge(there_ratio)
    goal = await there.numbered("orders", 7)
    # nothing is sent again, however late a confirm comes
    here = await edge(here_ratio, mca=to(there.address, window=16) | {"data_timeout_s": 60})
    away = await here.remote("away")
    await here.put(away, *(b"%d" % each for each in range(number)))  # by somebody who is not traced
    hops = await are_there(collector, f"forward {away.name}", number if here_ratio == 1 else number // 4)
    came = await are_there(collector, f"send {goal.name}", number if there_ratio == 1 else number // 4)
    left, arrived = {span.span_id for span in hops}, {span.parent_id for span in came}
    assert left <= arrived if here_ratio < there_ratio else arrived <= left
    assert not any(span.parent_id or span.links for span in hops)
    await until(lambda: here.is_empty(away))
    assert (await there.stats(goal))["ready"] == number
    assert len(collector.of_name(f"send {goal.name}")) == len(came)


async def test_connections_are_not_all_traced_at_the_same_numbers(recorder: NewRecorder) -> None:
    """Else whoever opens one for each message would be traced never, or always."""
    traces = recorder("rqp", ratio=0.25)
    hops = TracePropagation(traces, lambda _: DeliverySpans(traces, Clock()))
    ports = range(32768, 61000)
    traced = sum(len(Passage("192.0.2.1", port).passed(hops, 1)) for port in ports)
    assert 0.23 < traced / len(ports) < 0.27


async def test_names(recorder: NewRecorder) -> None:
    """Whatever differs makes another one: also the body, as a port is used again later."""
    traces = recorder("rqp")
    hops = TracePropagation(traces, lambda _: DeliverySpans(traces, Clock()))
    found = set()
    for address, port in (("192.0.2.1", 40_000), ("192.0.2.1", 40_001), ("2001:db8::1", 40_000)):
        passage = Passage(address, port)
        for _ in range(2):
            assert passage.passed(hops, 3) == range(3)
            for place in range(3):
                for queue_id, body in ((7, b"one"), (7, b"two"), (8, b"one")):
                    found.add(passage.hop(place, queue_id, body).context.trace_id)
    assert len(found) == 3 * 6 * 3


async def test_the_same_address_in_two_forms(edge: NewEdge, collector: Collector) -> None:
    """An IPv6 socket shows an IPv4 address as ::ffff:a.b.c.d; both ends mean the same one, at whichever it is."""
    there = await edge(listeners=ANYWHERE)
    goal = await there.numbered("orders", 7, exclusive=False)
    port = there.places["mca"][1]
    here = await edge(mca=to(f"127.0.0.1:{port}"))
    mapped = await edge(mca=to(f"[::ffff:127.0.0.1]:{port}"))
    six = await edge(mca=to(f"[::1]:{port}"))
    for number, sender in enumerate((here, mapped, six)):
        away = await sender.remote(f"away{number}")
        await sender.put(away, b"a pump")
        (hop,) = await are_there(collector, f"forward away{number}", 1)
        came = await are_there(collector, f"send {goal.name}", number + 1)
        assert came[-1].parent_id == hop.span_id


async def test_each_attempt_is_a_hop(edge: NewEdge, collector: Collector) -> None:
    """Whoever does not confirm may have stored it all the same; what goes to another one next has another name."""
    async with McaPeer() as silent:
        here = await edge(mca=to(silent.address))
        away = await here.remote("away")
        await put_as_a_client(here, away, b"a pump")
        await (await silent.reserved()).body()
        there = await edge()
        goal = await there.numbered("orders", 7)
        await here.tools.peers.apply("other", registered(there.address), "cli")
        (came,) = await are_there(collector, f"send {goal.name}", 1)
    hops, attempts = hops_and_attempts(await are_there(collector, f"forward {away.name}", 4))
    failed, well = sorted(hops, key=lambda span: not span.is_error)
    assert failed.attributes["error.type"] == failed.attributes["penstock.outcome"] == "data_timeout"
    assert failed.attributes["network.peer.address"] == silent.address
    assert well.attributes["penstock.outcome"] == "confirmed"
    assert came.parent_id == well.span_id != failed.span_id
    assert {span.trace_id for span in attempts} == {collector.of_name(f"send {away.name}")[0].trace_id}


async def test_what_is_there_twice_is_so_in_two_traces(edge: NewEdge, collector: Collector) -> None:
    """The confirm comes too late, so it is sent again (3.3): each goes on from the attempt that brought it."""
    there = await edge()
    goal = await there.numbered("orders", 7, exclusive=False)
    here = await edge(mca=to(there.address))
    away = await here.remote("away")
    await put_as_a_client(here, away, b"first")
    await until(lambda: here.is_empty(away))
    async with redis.asyncio.Redis.from_url(there.url) as server:
        await server.client_pause(60_000, all=False)
        await put_as_a_client(here, away, b"second")
        await until(lambda: failures(here, "data_timeout") == 1)
        await server.client_unpause()
    await until(lambda: here.is_empty(away))
    _, *twice = await are_there(collector, f"send {goal.name}", 3)
    hops, _ = hops_and_attempts(await are_there(collector, f"forward {away.name}", 6))
    outcomes = {span.span_id: span.attributes["penstock.outcome"] for span in hops}
    assert {outcomes[span.parent_id] for span in twice} == {"data_timeout", "confirmed"}


async def test_what_finds_no_room_goes_on_among_the_dead(edge: NewEdge, collector: Collector) -> None:
    """UNRELIABLE ones that are refused are buried (2.1), in the trace that came with them."""
    there = await edge()
    goal = await there.numbered("orders", 7, maxLength=1)
    here = await edge(mca=to(there.address))
    away = await here.remote("away", reliable=False)
    await here.put(away, b"one", b"two")
    (buried,) = await are_there(collector, f"bury {goal.name}", 1)
    hops = {span.span_id: span for span in await are_there(collector, f"forward {away.name}", 2)}
    assert buried.trace_id == hops[buried.parent_id].trace_id
    assert buried.attributes["penstock.reason"] == "queue_full"


async def test_what_is_not_sent_at_all(edge: NewEdge, collector: Collector) -> None:
    """Nobody has the queue: an UNRELIABLE message becomes a dead letter here, and there is no hop."""
    here = await edge(mca={"availability_timeout_s": 0.05})
    away = await here.remote("away", reliable=False)
    await put_as_a_client(here, away, b"a pump")
    (attempt,) = await are_there(collector, f"forward {away.name}", 1)
    assert attempt.trace_id == collector.of_name(f"send {away.name}")[0].trace_id
    assert attempt.attributes["error.type"] == "no_receiver"
    assert attempt.links == []


async def test_a_trace_of_a_message_that_is_no_hop(edge: NewEdge, collector: Collector) -> None:
    """Its number does not say so: its own trace has the attempt, and the other system does not go on."""
    there = await edge(0.0)
    goal = await there.numbered("orders", 7)
    here = await edge(0.0, mca=to(there.address, window=4))
    away = await here.remote("away")
    context = fresh()
    traced = records.encode(b"a pump", {KEY: context.header})
    await here.put(away, b"another")
    await here.put_records(away, traced, records.encode(b"a third"))
    (attempt,) = await are_there(collector, f"forward {away.name}", 1)
    assert attempt.trace_id == f"{context.trace_id:032x}"
    assert attempt.attributes["penstock.outcome"] == "confirmed"
    assert attempt.links == []
    await until(lambda: here.is_empty(away))
    assert await there.bodies(goal) == [b"another", b"a pump", b"a third"]
    assert collector.of_name(f"send {goal.name}") == []
