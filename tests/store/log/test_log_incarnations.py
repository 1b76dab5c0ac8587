"""Incarnations: a new one begins whenever the store may have lost numbers (pubsub.md 4.4)."""

import shutil
from pathlib import Path

from services.store import PipeSettings
from services.store.log.log import Entry, LogSpec
from services.store.log.tail import Tail
from services.store.model.intervals import Intervals
from services.store.model.keys import DomainKeys
from tests.servers import Server
from tests.store.desk import Desk, until
from tests.store.log.test_tail import next_of
from tests.store.logbook import Logbook, arrived, check_numbering, logbook, own
from tests.stores import every_server
from tests.topologies import Cluster, Replicated

FIELDS = ("n", "1", "t", "0", "o", "x", "f", "1", "x", "0", "b", "SEND t x\n")
PATIENT = PipeSettings(patience_s=20.0)


def origins(entries: list[Entry]) -> list[bytes]:
    """Return the origins of the entries, without repetitions."""
    return list(dict.fromkeys(entry.origin for entry in entries))


async def write(book: Logbook, *names: str) -> None:
    for name in names:
        await book.send(b"t " + name.encode())


async def passed(book: Logbook, at_ms: int) -> bool:
    return await book.log.domain.link.now_ms() > at_ms


async def test_running_server_keeps_its_incarnation(server: Server) -> None:
    """Check that numbers continue over new processes, reloaded functions and repeated declarations."""
    async with Desk(server) as desk, logbook(desk) as book:
        first = own(await book.state())
        for number in range(3):
            await write(book, f"{number}")
            await desk.store.initialise()
            async with desk.another() as other, logbook(other) as there:
                await write(there, f"{number} there")
                assert own(await there.state()) == first
        assert len(origins(await book.entries())) == await book.counter("incarnations") == 1
        check_numbering(await book.entries())


async def test_stores_have_different_incarnations(server: Server) -> None:
    seen = set()
    for _ in range(3):
        server.clear()
        async with Desk(server) as desk, logbook(desk) as book:
            seen.add(own(await book.state()))
    assert len({store for store, _ in seen}) == len({inc for _, inc in seen}) == 3


@every_server
async def test_restart_begins_an_incarnation(own_server: Server) -> None:
    """Check that a restart begins an incarnation even without loss; old numbers stay with the old one."""
    async with Desk(own_server, pipe=PATIENT) as desk, logbook(desk) as book:
        incarnations = []
        for round_ in range(3):
            await write(book, f"{round_} a", f"{round_} b")
            incarnations.append(own(await book.state()))
            own_server.kill9()
            own_server.restart()
            await until(lambda: desk.pipe.trouble is None)
        state = await book.state()
        assert len({*incarnations, own(state)}) == 4
        assert {state.held[old] for old in incarnations} == {Intervals.parse("1-2")}
        assert own(state) not in state.held  # none of its numbers was assigned yet
        await write(book, "last")
        entries = await book.entries()
        assert [(e.first, e.place.serial) for e in entries] == [
            (n, s) for s, n in enumerate([1, 2] * 3 + [1], 1)
        ]
        assert len({e.place.era for e in entries}) == 4
        check_numbering(entries)
        assert (await book.state()).head == await book.head() == entries[-1].place


async def test_primary_that_was_a_replica_begins_an_incarnation(own_server: Server) -> None:
    """Check this for the same process, whose data may have come from another server."""
    async with Desk(own_server, pipe=PATIENT) as desk, logbook(desk) as book:
        await write(book, "1")
        old = own(await book.state())
        own_server.call("REPLICAOF", "127.0.0.1", "1")
        begun = await book.log.domain.link.now_ms()
        await until(lambda: passed(book, begun + 10))  # a change of the data takes longer
        own_server.call("REPLICAOF", "NO", "ONE")
        await until(lambda: desk.pipe.trouble is None)
        await write(book, "2")
        assert own(await book.state()) != old
        assert [e.first for e in await book.entries()] == [1, 1]


async def test_restored_copy_begins_an_incarnation(own_server: Server, tmp_path: Path) -> None:
    """Check that after a restore numbers and places stay unique, and that neighbours return the lost part."""
    data, copy = own_server.directory, tmp_path / "copy"
    async with Desk(own_server, pipe=PATIENT) as desk, logbook(desk) as book:
        await write(book, "kept 1", "kept 2")
        old = own(await book.state())
        own_server.kill9()
        shutil.copytree(data, copy, ignore=shutil.ignore_patterns("*.sock"))
        own_server.restart()
        await write(book, "lost 3", "lost 4")
        lost, newer = await book.entries(), own(await book.state())
        own_server.kill9()
        shutil.rmtree(data)
        copy.rename(data)
        own_server.restart()
    async with Desk(own_server) as desk, logbook(desk) as book:
        state = await book.state()
        assert own(state) not in (old, newer)
        assert state.held == {old: Intervals.parse("1-2")}
        await write(book, "new 3")
        assert await book.accept(
            arrived(newer, 1, b"t lost 3", b"t lost 4"), arrived(old, 1, b"t 1", b"t 2")
        ) == (2, 0)
        assert await book.lines() == [b"t kept 1", b"t kept 2", b"t new 3", b"t lost 3", b"t lost 4"]
        again = (await book.entries())[2:]
        assert min(e.place for e in again) > max(e.place for e in lost), "a place that meant something else"
        assert not {(e.origin, e.first) for e in again[:1]} & {(e.origin, e.first) for e in lost}
        check_numbering(await book.entries())


async def test_places_grow_after_the_clock_went_back(own_server: Server) -> None:
    async with Desk(own_server, pipe=PATIENT) as desk, logbook(desk) as book:
        await write(book, "1")
        far = (await book.head()).era + 10**10
        own_server.call("HSET", book.log.keys.log[1], "era", far)  # as the clock was before it was set right
        own_server.call("XADD", book.log.keys.log[0], f"{far}-2", *FIELDS)
        own_server.call("HSET", book.log.keys.log[1], "serial", 2)
        own_server.kill9()
        own_server.restart()
        await write(book, "2")
        place = (await book.entries())[-1].place
        assert place.serial == 3
        assert place.era >= far + 4096  # beyond all eras that may have been lost (decision 8)


# other servers


async def test_failover_begins_an_incarnation(replicated: Replicated) -> None:
    """Check that acknowledged entries survive a failover, and that a tail continues after them."""
    spec = LogSpec(ack_level="replicated:1")
    async with Desk(replicated.url, pipe=PATIENT) as desk, logbook(desk, spec) as book:
        tail = Tail(desk.store.connector, book.log.keys, 1)
        assert await tail.next() == []
        await write(book, *(f"before {n}" for n in range(20)))
        seen = await tail.next()
        old, primary = own(await book.state()), replicated.primary()
        primary.kill9()
        await until(lambda: replicated.primary() is not primary)
        await write(book, *(f"after {n}" for n in range(20)))
        state = await book.state()
        assert own(state) != old
        assert state.held == {old: Intervals.parse("1-20"), own(state): Intervals.parse("1-20")}
        entries = await book.entries()
        check_numbering(entries)
        assert origins(entries) == [b" ".join(old), b" ".join(own(state))]
        while len(seen) < len(entries):
            seen += await next_of(tail)
        assert seen == entries
        await tail.close()


async def test_moved_slot_begins_an_incarnation(own_cluster: Cluster) -> None:
    """Check this also for the slot's return: its former server may have been restored in between."""
    epoch, cluster = DomainKeys("main").epoch, own_cluster
    async with Desk(cluster.url, pipe=PATIENT) as desk, logbook(desk, LogSpec(ack_level="memory")) as book:
        tail = Tail(desk.store.connector, book.log.keys, 0)
        seen = await tail.next()
        home = cluster.holder(epoch)
        away = next(node for node in cluster.nodes if node is not home)
        await write(book, "0")
        for number, node in enumerate((away, home), 1):
            cluster.move(epoch, node)
            await write(book, f"{number}")
        entries = await book.entries()
        assert [e.first for e in entries] == [1, 1, 1]
        assert len(origins(entries)) == 3
        check_numbering(entries)
        assert await book.lines() == [b"t 0", b"t 1", b"t 2"]
        while len(seen) < 3:
            seen += await next_of(tail)
        assert seen == entries
        await tail.close()
