"""Test `penstock log`: contents and links of the store's log of the text service (docs/cli.md)."""

from __future__ import annotations

import re
from typing import Any

from services.store import QueueSpec, Store
from services.store.log.log import NO_SUBSCRIPTIONS, Log, LogSpec
from services.store.log.replica import Arrived, Gap, Replica
from services.store.model import records
from services.store.model.intervals import Intervals
from services.store.model.spec import LOG_DOMAIN
from services.store.pipeline.async_client import AsyncClient
from tests.cli.shell import Shell
from tests.servers import Server, eventually

HOUR_MS = 3_600_000
KEPT = LogSpec("fsync", 2 * HOUR_MS, 1 << 20)


async def declared(store: Store) -> Log:
    """Return a log that an edge has created and no edge has used."""
    log = Log(store.get_domain(LOG_DOMAIN), KEPT)
    await log.declare()
    return log


def declare(shell: Shell) -> None:
    shell.with_store(declared)


def arrived(origin: tuple[bytes, bytes], first: int, number: int) -> Arrived:
    return Arrived(*origin, first, number, False, b"SEND t x\n" * number)


def take(shell: Shell, *items: Arrived | Gap) -> None:
    """Store messages as if a neighbour had sent them over a link."""

    async def work(store: Store) -> None:
        await Replica(await declared(store)).accept(list(items), NO_SUBSCRIPTIONS)

    shell.with_store(work)


def log_show(shell: Shell) -> dict[str, Any]:
    return shell.run("log", "show", "--json").object


def test_store_without_log(ready: Shell) -> None:
    error = ready.fails("log", "show", code=4)
    assert error.startswith("no_log: no text pub/sub server has used this store yet")


def test_store_without_setup_differs_from_no_log(alone: Shell, server: Server) -> None:
    assert alone.fails("log", "show", code=3, REDIS_URL=server.url).startswith("not_initialised: ")


def test_unused_log(ready: Shell) -> None:
    declare(ready)
    reported = log_show(ready)
    assert (reported["store"], reported["incarnation"], reported["messages"], reported["entries"]) == (
        "",
        "",
        0,
        0,
    )
    assert (reported["oldest_age_ms"], reported["origins"], reported["neighbours"], reported["queues"]) == (
        None,
        [],
        [],
        [],
    )
    assert "none yet" in ready.run("log", "show").text


def test_retention_is_shown(ready: Shell, server: Server) -> None:
    """Check that the shown retention is at most a quarter of the server's memory (pubsub.md 4.6)."""
    declare(ready)
    reported = log_show(ready)
    assert (reported["ack_level"], reported["retention_ms"]) == ("fsync", 2 * HOUR_MS)
    assert (reported["max_bytes"], reported["bound_bytes"]) == (1 << 20, 1 << 20)
    with server.configured(maxmemory=str(3 << 20)):
        reported = log_show(ready)
        assert (reported["max_bytes"], reported["bound_bytes"]) == (1 << 20, 3 << 18)
        assert "2h, at most 786,432 bytes" in ready.run("log", "show").text


def test_received_and_missing_messages(ready: Shell) -> None:
    """Check that received and missing messages are shown (pubsub.md 4.4, 4.5)."""
    one, two = (b"one", b"i1"), (b"two", b"i2")
    take(ready, arrived(one, 1, 3), arrived(two, 7, 2), Gap(*one, 4, 5), arrived(one, 9, 1))
    reported = log_show(ready)
    assert (reported["messages"], reported["entries"]) == (6, 3)
    assert reported["bytes"] == 6 * 9 + 3 + 2 + 1 + 3 * (len("one i1") + 48), (
        "their size in memory (lua/log.lua)"
    )
    assert (reported["accepted"], reported["gaps"], reported["sent"], reported["trimmed"]) == (6, 2, 0, 0)
    assert reported["oldest_age_ms"] < HOUR_MS
    assert reported["incarnations"] == 1
    assert sorted(reported["origins"], key=lambda origin: origin["store"]) == [
        {"store": "one", "incarnation": "i1", "own": False, "held": "1-3+9-9", "gone": "4-5"},
        {"store": "two", "incarnation": "i2", "own": False, "held": "7-8", "gone": "-"},
    ]
    table = ready.run("log", "show").text
    assert [line.split() for line in table.splitlines() if line.startswith("one ")] == [
        ["one", "i1", "4", "2", "1-3", "9-9"]
    ]


def test_many_intervals_are_cut_in_tables_only(ready: Shell) -> None:
    take(ready, *(arrived((b"one", b"i1"), first, 1) for first in range(1, 20, 2)))
    assert "1-1 3-3 5-5 and 7 more" in ready.run("log", "show").text
    (origin,) = log_show(ready)["origins"]
    assert origin["held"] == Intervals.of([(n, n) for n in range(1, 20, 2)]).format()


def test_neighbours_and_their_followers(ready: Shell) -> None:
    """Check that every store is shown with which a link was ever set up, linked now or not (pubsub.md 4.3)."""

    async def work(store: Store) -> None:
        replica = Replica(await declared(store))
        for name in (b"north", b"south"):
            await replica.baseline(name, {})
        await replica.note_seen(b"north", b"theirs/ours", b"17-4")
        assert await replica.lease(b"north", "pubsub-host-1 c7", HOUR_MS)

    ready.with_store(work)
    assert log_show(ready)["neighbours"] == [
        {"store": "north", "seen": "17-4", "follower": "pubsub-host-1 c7"},
        {"store": "south", "seen": "", "follower": ""},
    ]
    table = ready.run("log", "show").text
    assert "pubsub-host-1 c7" in table
    assert re.search(r"^south .* -$", table, re.M)


def test_queues_with_bindings(ready: Shell) -> None:
    """Check that queues with bindings are shown (pubsub.md 5.1, 5.2)."""
    declare(ready)
    ready.run("queue", "create", "plain")
    ready.run("queue", "create", "audit", "--bindings-text-subscribe", "a*", "--bindings-text-subscribe", "b")
    ready.run("queue", "create", "events", "--bindings-text-publish", "ev")
    assert log_show(ready)["queues"] == [
        {"name": "audit", "subscribe": ["a*", "b"], "publish": ""},
        {"name": "events", "subscribe": [], "publish": "ev"},
    ]
    rows = [line.split() for line in ready.run("log", "show").text.splitlines()]
    assert ["audit", "a*", "b", "-"] in rows
    assert ["events", "ev"] in rows


def test_show_is_read_only(ready: Shell, server: Server) -> None:
    """Check that `show` writes nothing, also on a changed server, which a sender or link would record (4.4)."""
    take(ready, arrived((b"one", b"i1"), 1, 3))
    before = log_show(ready)
    server.kill9()
    server.start()
    after = log_show(ready)
    assert {**after, "oldest_age_ms": 0} == {**before, "oldest_age_ms": 0}


def test_own_origin_is_first(ready: Shell) -> None:
    async def work(store: Store) -> None:
        log = await declared(store)
        domain = store.open_domain(LOG_DOMAIN)
        await domain.pipe.ready()
        queue, _ = await store.catalogue.declare(
            "events", QueueSpec(bindings={"text": {"publish": "ev"}}), "test"
        )
        assert await AsyncClient(domain.pipe).publish(queue, [records.encode(b"x")] * 3, "test") == []
        await Replica(log).accept([arrived((b"one", b"i1"), 1, 1)], NO_SUBSCRIPTIONS)

    ready.with_store(work)
    reported = log_show(ready)
    first, second = reported["origins"]
    own = {
        "store": reported["store"],
        "incarnation": reported["incarnation"],
        "own": True,
        "held": "1-3",
        "gone": "-",
    }
    assert (first, second["store"]) == (own, "one")
    assert reported["sent"] == 3
    assert reported["head"].endswith("-4")
    assert f"{reported['store']} (here)" in ready.run("log", "show").text


def test_trimmed_messages_are_counted_as_gone(ready: Shell, server: Server) -> None:
    """Check that trimmed messages count as gone, as their numbers are kept (pubsub.md 4.6)."""
    take(ready, arrived((b"one", b"i1"), 1, 3))

    async def trim(store: Store) -> int:
        log = Log(store.get_domain(LOG_DOMAIN), LogSpec("fsync", 0, 1 << 20))
        await log.declare()
        return await log.trim()

    assert eventually(lambda: ready.with_store(trim)) == 3
    reported = log_show(ready)
    assert (reported["messages"], reported["trimmed"], reported["oldest_age_ms"]) == (0, 3, None)
    assert reported["origins"][0]["gone"] == reported["origins"][0]["held"] == "1-3"


def test_edge_user_may_show_the_log(ready: Shell, server: Server) -> None:
    """Check that the rights of `store rights` suffice to show the log (docs/operations.md)."""
    take(ready, arrived((b"one", b"i1"), 1, 3))
    words = ready.run("store", "rights").text.split()
    assert server.call(*words, ">secret") == b"OK"
    own = ready.run("log", "show", "--json", "--store", f"redis://edge:secret@127.0.0.1:{server.port}").object
    assert own["messages"] == 3
