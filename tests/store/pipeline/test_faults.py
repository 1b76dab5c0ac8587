"""Servers that die, hang or lose replies during traffic (docs/store.md; tmq.md 7.2).

An operation is done once, refused and never done, or - only after request_timeout - of unknown outcome.
"""

import asyncio
import time

import pytest

from services.store import INTERNAL_CLIENT, CommitPart, PipeSettings, Source
from services.store.model.errors import DatasetLost, OutcomeUnknown, StoreFault, StoreUnavailable
from services.store.redis.library import source
from tests.proxy import Proxy
from tests.servers import Server
from tests.store.desk import Desk, bodies, encode, numbered, until
from tests.store.traffic import Traffic
from tests.stores import every_server

HASTY = PipeSettings(patience_s=0.5, reply_timeout_s=0.3, call_deadline_s=20.0, request_timeout_s=30.0)


async def busy(traffic: Traffic, more: int) -> None:
    """Wait until `count` more messages were stored, and some taken."""
    goal, seen = len(traffic.stored) + more, len(traffic.seen)
    await until(lambda: len(traffic.stored) >= goal and len(traffic.seen) > seen)


@every_server
async def test_store_killed_and_restarted_during_traffic(own_server: Server) -> None:
    """Check that no acknowledged message is lost, and nothing was applied twice."""
    async with Desk(own_server) as desk:
        traffic = Traffic(desk, await desk.queue())
        traffic.start()
        for _ in range(4):
            await busy(traffic, 400)
            own_server.kill9()
            own_server.restart()
        await busy(traffic, 200)
        await traffic.stop()
        assert traffic.unknown == set()
        await traffic.check()


async def test_store_that_hangs_and_continues(own_server: Server) -> None:
    """Check that calls which wait in the server's sockets and are repeated on new connections run once."""
    async with Desk(own_server, pipe=HASTY) as desk:
        traffic = Traffic(desk, await desk.queue())
        traffic.start()
        for _ in range(3):
            await busy(traffic, 300)
            own_server.stop()
            await until(lambda: desk.pipe.trouble is not None)
            own_server.cont()
            await until(lambda: desk.pipe.trouble is None)
        await busy(traffic, 100)
        await traffic.stop()
        assert traffic.unknown == set()
        await traffic.check()


async def test_outcome_is_unknown_after_the_request_timeout(
    own_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    settings = PipeSettings(patience_s=0.3, reply_timeout_s=0.2, call_deadline_s=20.0, request_timeout_s=1.5)
    async with Desk(own_server, pipe=settings) as desk:
        queue, other = await desk.queue(), await desk.queue("other")
        await desk.put(queue, b"held", *numbered(3))
        (held,) = await desk.take(queue, 1)
        own_server.stop()
        start = time.monotonic()
        first = [desk.publishing(queue, b"x"), desk.taking(queue, 2), desk.counting(queue)]
        commit = desk.committing("t1", CommitPart(other, [], encode(b"y"), "t"))
        others = [desk.noting(held, "noted"), desk.numbering("journal", 1, other, b"z")]
        others.append(desk.burying(other, *encode(b"dead"), "refused"))
        answers = await asyncio.gather(*first, commit, *others, return_exceptions=True)
        assert {type(a) for a in answers} == {OutcomeUnknown}
        assert 1.4 <= time.monotonic() - start < 10
        assert desk.refusals["outcome_unknown"] >= 1
        with pytest.raises(StoreUnavailable):
            await desk.publish(queue, b"never")
        own_server.cont()
        await until(lambda: desk.pipe.trouble is None)
        assert await desk.count(other) == 2  # it was done, once
        # the taken message returned after the timeout
        assert sorted(await desk.drain(queue)) == [*numbered(3), b"x"]
        await desk.release([held])
        (again,) = await desk.take(queue)
        assert again.note == "noted"
    assert "internal error in a reply handler" not in caplog.text  # no caller was answered twice


async def test_note_times_out_like_other_requests(own_server: Server) -> None:
    """Check that the caller of a note, which settles nothing, gets an answer in time."""
    async with Desk(own_server, pipe=HASTY) as desk:
        queue = await desk.queue()
        await desk.put(queue, b"a")
        (held,) = await desk.take(queue)
        own_server.kill9()
        await until(lambda: desk.pipe.trouble is not None)
        with pytest.raises(StoreUnavailable):
            await asyncio.wait_for(desk.noting(held, "noted"), 10)
        own_server.restart()


async def test_late_call_is_refused_for_good(own_server: Server) -> None:
    """Check that a late call fails, and that nothing of it is stored later (tmq.md 7.2)."""
    settings = PipeSettings(patience_s=0.3, reply_timeout_s=0.2, call_deadline_s=0.5, request_timeout_s=30.0)
    async with Desk(own_server, pipe=settings) as desk:
        queue = await desk.queue()
        await desk.put(queue, b"a")
        (held,) = await desk.take(queue)
        own_server.stop()
        late = desk.publishing(queue, b"late")
        settled = desk.settling([held])
        start = time.monotonic()
        await until(lambda: time.monotonic() > start + 0.8)
        own_server.cont()
        with pytest.raises(StoreUnavailable):
            await late
        await settled  # a settle is retried, as the lease is still valid
        assert await desk.drain(queue) == []
        assert (await desk.stats(queue))["acked"] == 1
        assert desk.refusals["too_late"] >= 1


async def test_call_with_lost_reply_is_repeated(own_server: Server) -> None:
    async with Proxy(own_server.port) as proxy, Desk(own_server), Desk(proxy.url) as desk:
        traffic = Traffic(desk, await desk.queue())
        traffic.start()
        for _ in range(6):
            await busy(traffic, 100)
            before = proxy.lost
            proxy.lose_replies_to = b"ps1_work"
            await until(lambda before=before: proxy.lost > before)
            proxy.lose_replies_to = b""
        await busy(traffic, 100)
        await traffic.stop()
        assert traffic.unknown == traffic.refused == set()
        await traffic.check()
        assert (await desk.stats(traffic.queue))["duplicates"] >= 6


async def test_commit_with_lost_reply_is_applied_once(own_server: Server) -> None:
    """Check that a commit with a lost reply is applied once (tmq.md 5.3)."""
    async with Proxy(own_server.port) as proxy, Desk(own_server), Desk(proxy.url) as desk:
        queue, other = await desk.queue(), await desk.queue("other")
        await desk.put(queue, *numbered(50))
        got = await desk.take(queue, 40)
        proxy.lose_replies_to = b"ps1_work"
        commit = asyncio.create_task(
            desk.commit(
                "t1", CommitPart(queue, got, [], "t"), CommitPart(other, [], encode(*numbered(5)), "t")
            )
        )
        await until(lambda: proxy.lost)
        proxy.lose_replies_to = b""
        await commit
        assert await desk.drain(other) == numbered(5)
        assert await desk.drain(queue) == numbered(10, 40)
        assert (await desk.stats(queue))["acked"] == 50


async def test_silent_connection_is_closed(own_server: Server) -> None:
    """Check that a connection whose peer vanished is replaced at once, even with megabytes unsent."""
    async with Proxy(own_server.port) as proxy, Desk(own_server), Desk(proxy.url, pipe=HASTY) as desk:
        queue = await desk.queue()
        await desk.put(queue, b"first")
        assert proxy.freeze() >= 1
        large = [b"%d" % i + b"x" * (6 << 20) for i in range(3)]
        runs = [desk.publishing(queue, body, source=Source(INTERNAL_CLIENT)) for body in large]
        async with asyncio.timeout(15):
            assert await asyncio.gather(*runs) == [[]] * 3
        assert await desk.drain(queue) == [b"first", *large]


async def test_connections_closed_by_the_server_are_reopened(own_server: Server) -> None:
    async with Desk(own_server) as desk:
        traffic = Traffic(desk, await desk.queue())
        traffic.start()
        for _ in range(5):
            await busy(traffic, 100)
            own_server.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await busy(traffic, 100)
        await traffic.stop()
        assert traffic.unknown == traffic.refused == set()
        await traffic.check()


async def test_demoted_server_gets_no_writes(own_server: Server) -> None:
    async with Desk(own_server, pipe=HASTY) as desk:
        traffic = Traffic(desk, await desk.queue())
        traffic.start()
        await busy(traffic, 100)
        own_server.call("REPLICAOF", "127.0.0.1", "1")
        await until(lambda: traffic.refused)
        own_server.call("REPLICAOF", "NO", "ONE")
        await busy(traffic, 100)
        await traffic.stop()
        assert traffic.unknown == set()
        await traffic.check()


async def test_unavailable_store_refuses_at_once_and_settles_are_kept(own_server: Server) -> None:
    async with Desk(own_server, pipe=HASTY) as desk:
        queue = await desk.queue()
        await desk.put(queue, *numbered(3))
        held = await desk.take(queue, 2)
        own_server.kill9()
        await until(lambda: desk.pipe.trouble is not None)  # without any request
        start = time.monotonic()
        with pytest.raises(StoreUnavailable):
            await desk.publish(queue, b"x")
        assert time.monotonic() - start < 5
        await until(lambda: desk.pipe.gate.refuses() is not None)
        start = time.monotonic()
        for ask in (desk.publish(queue, b"y"), desk.take(queue), desk.count(queue)):
            with pytest.raises(StoreUnavailable):
                await ask
        assert time.monotonic() - start < 0.1
        assert desk.refusals["store_unavailable"] >= 4
        settled = desk.settling(held[:1])
        own_server.restart()
        await settled
        assert await desk.drain(queue) == numbered(1, 2)
        assert desk.pipe.waiting.pending_bytes == 0


async def test_idle_process_notices_lost_data(own_server: Server) -> None:
    """Check that an idle process notices lost data, which readiness depends on (docs/architecture.md)."""
    async with Desk(own_server, pipe=HASTY) as desk:
        own_server.call("FLUSHALL")
        await until(lambda: isinstance(desk.pipe.trouble, DatasetLost))
        assert desk.store.fault_of() == str(desk.pipe.trouble)


async def test_another_dataset_raises_an_alarm(own_server: Server) -> None:
    """Check the alarm for an empty store that was set up again (docs/store.md, "When the store has lost data")."""
    async with Desk(own_server, pipe=HASTY) as desk:
        own_server.call("FLUSHALL")
        await until(lambda: isinstance(desk.pipe.trouble, DatasetLost))
        assert desk.refusals["dataset_changed"] == 0
        await desk.store.initialise()
        await until(lambda: desk.pipe.trouble is None)
        assert desk.refusals["dataset_changed"] == 1
        assert desk.refusals["new_generation"] == 0


async def test_missing_functions_are_reported(own_server: Server) -> None:
    async with Desk(own_server, pipe=HASTY) as desk:
        queue = await desk.queue()
        own_server.call("FUNCTION", "FLUSH")
        with pytest.raises(StoreUnavailable, match="lacks the functions of this version"):
            await desk.publish(queue, b"x")
        await desk.store.initialise()
        await until(lambda: desk.pipe.trouble is None)
        assert await desk.publish(queue, b"y") == []
        assert await desk.drain(queue) == [b"y"]


async def test_older_functions_write_nothing(own_server: Server) -> None:
    """Check that an edge newer than the store's functions waits for `penstock store init`."""
    async with Desk(own_server, pipe=HASTY) as desk:
        queue = await desk.queue()
        assert "offer('work_timed'" in source()
        older = source().replace("offer('work_timed'", "offer('unknown_then'")
        own_server.call("FUNCTION", "LOAD", "REPLACE", older)
        with pytest.raises(StoreUnavailable, match="lacks the functions of this version"):
            await desk.publish(queue, b"x")
        assert own_server.call("XLEN", queue.keys[0]) == 0
        await desk.store.initialise()
        await until(lambda: desk.pipe.trouble is None)
        assert await desk.publish(queue, b"y") == []
        assert await desk.drain(queue) == [b"y"]


async def test_store_fault_is_reported_and_not_repeated(own_server: Server) -> None:
    """Check that damaged data fails only the callers of its call."""
    async with Desk(own_server) as desk:
        queue, other = await desk.queue(), await desk.queue("other")
        await desk.put(queue, *numbered(3))
        held = await desk.take(queue, 2)
        await desk.put(other, b"a")
        mine = await desk.take(other)
        own_server.call("DEL", queue.keys[2])
        own_server.call("SET", queue.keys[2], "damaged")
        before = desk.pipe.calls
        bad, good = desk.settling(held), desk.settling(mine)
        async with asyncio.timeout(5):
            with pytest.raises(StoreFault):
                await bad
            await good
            assert await desk.publish(other, b"b") == []
        assert desk.pipe.calls - before < 10
        assert bodies(await desk.take(other)) == [b"b"]
