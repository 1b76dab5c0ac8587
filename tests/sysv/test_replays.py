"""Test replays: each message is stored once, for any state of its journal (docs/sysv.md 3.3)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.store.model import records
from services.store.model.identities import JournalNumber
from services.store.pipeline.async_client import AsyncClient
from services.store.pipeline.idempotent import Idempotent
from services.sysv.journal import Journal
from services.sysv.kernel import READ, LocalQueue
from services.sysv.record import MTYPE_AT, STRUCK_AT
from services.sysv.settings import Format, format_key
from tests.live import until
from tests.servers import Server
from tests.sysv.live import LiveBridge
from tests.sysv.local import existing
from tests.sysv.program import Program
from tests.sysv.test_outbound import carried, out, sent


async def test_replay_duplicates_nothing(bridge: LiveBridge, key: int, program: Program) -> None:
    """Check that a message is skipped that was stored before the bridge died without the reply."""
    queue = await bridge.queue("orders")
    journal = bridge.journal / f"{format_key(key)}.journal"
    await bridge.open(out(key))
    await sent(program, key, 1, b"1")
    await until(lambda: bridge.bodies(queue))
    await bridge.stop()
    unstruck = bytearray(journal.read_bytes())
    unstruck[STRUCK_AT:MTYPE_AT] = bytes(MTYPE_AT - STRUCK_AT)  # as before
    journal.write_bytes(unstruck)
    await bridge.open(out(key))
    await sent(program, key, 1, b"2")
    await carried(bridge, 2)
    assert await bridge.bodies(queue) == [b"1", b"2"]
    assert not bridge.log.events("journal_stale")


async def test_unknown_outcome_is_retried(own_server: Server, own_bridge: LiveBridge, key: int) -> None:
    """Check that a message in a stalled store is repeated and stored once, and its journal is not called stale."""
    bridge = own_bridge
    queue = await bridge.queue("orders")
    await bridge.open(out(key), request_timeout_s=0.5)
    existing(key).send(b"1")
    await carried(bridge, 1)
    for number in (2, 3):
        own_server.stop()
        existing(key).send(b"%d" % number)
        existing(key).send(b"behind")
        await until(lambda: bridge.value("penstock_sysv_waiting", mapping="orders"))
        assert existing(key).current_messages == 1
        own_server.cont()
        await carried(bridge, 2 * number - 1)
    assert await bridge.bodies(queue) == [b"1", b"2", b"behind", b"3", b"behind"]
    assert bridge.log.events("sysv_waits", reason="outcome_unknown")
    assert not bridge.log.events("journal_stale")


async def run(bridge: LiveBridge, key: int, *bodies: bytes) -> None:
    """Run a bridge that carries these messages and stops in order."""
    await bridge.open(out(key))
    for body in bodies:
        existing(key).send(body)
    await carried(bridge, len(bodies))
    await bridge.stop()


def journal_of(bridge: LiveBridge, key: int) -> Path:
    return bridge.journal / f"{format_key(key)}.journal"


async def test_every_possible_copy_of_a_journal(
    bridge: LiveBridge, key: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check each copy of a journal from three runs, after each step of each message: none is lost or doubled."""
    queue = await bridge.queue("orders")
    path = journal_of(bridge, key)
    copies: list[bytes] = []

    def copied(step: str) -> Callable[..., object]:
        real = getattr(Journal, step)

        def done(journal: Journal, *arguments: object) -> object:
            answer = real(journal, *arguments)
            copies.append(path.read_bytes())
            return answer

        return done

    with monkeypatch.context() as patched:
        for step in ("plan", "received", "strike"):
            patched.setattr(Journal, step, copied(step))
        for first in (b"a", b"b", b"c"):
            await run(bridge, key, first + b"1", first + b"2")
    expected = await bridge.bodies(queue)
    assert len(expected) == 6
    assert len(copies) >= 18
    for number, copy in enumerate(copies):
        path.write_bytes(copy)
        await bridge.open(out(key))
        expected.append(b"%d" % number)
        existing(key).send(expected[-1])
        await until(lambda: has(bridge, expected))
        await bridge.stop()
    assert not bridge.log.events("journal_damaged")
    assert not bridge.log.events("journal_stale")


async def has(bridge: LiveBridge, expected: list[bytes]) -> bool:
    found = await bridge.bodies(await bridge.tools.catalogue.find("orders"))
    assert len(found) <= len(expected)
    return found == expected


def take_and_die(path: Path, key: int, body: bytes) -> None:
    """Receive a message as a bridge that is killed when the message is only in its journal."""
    existing(key).send(body)
    local, journal = LocalQueue(key, READ), Journal(path)
    local.open()
    journal.open(100)
    journal.plan("orders", Format.RAW, 100)
    size = local.receive(journal.address, 100)
    assert size is not None
    journal.received(size)
    journal.sync()
    journal.close()


async def test_old_copy_of_a_journal_after_a_kill(bridge: LiveBridge, key: int) -> None:
    """Check that a message in an old copy of the journal is new, for all numbers that the store has seen."""
    queue = await bridge.queue("orders")
    path = journal_of(bridge, key)
    await run(bridge, key, b"1")
    copy = path.read_bytes()
    await run(bridge, key, b"2", b"3")
    path.write_bytes(copy)
    take_and_die(path, key, b"4")
    await bridge.open(out(key))
    existing(key).send(b"5")
    await until(lambda: has(bridge, [b"1", b"2", b"3", b"4", b"5"]))
    assert await bridge.bodies(queue) == [b"1", b"2", b"3", b"4", b"5"]


async def test_two_journals_in_turn(bridge: LiveBridge, key: int) -> None:
    """Check a journal with an unpublished message that is replaced by a copy and restored later."""
    await bridge.queue("orders")
    path = journal_of(bridge, key)
    await run(bridge, key, b"1")
    copy = path.read_bytes()
    take_and_die(path, key, b"2")
    aside = path.read_bytes()
    path.write_bytes(copy)
    await run(bridge, key, b"3", b"4")
    path.write_bytes(aside)
    await bridge.open(out(key))
    existing(key).send(b"5")
    await until(lambda: has(bridge, [b"1", b"3", b"4", b"2", b"5"]))


async def test_old_copy_of_a_journal_after_an_unknown_outcome(
    own_server: Server, own_bridge: LiveBridge, key: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check an old copy of a journal after its first message reached a stalled store."""
    bridge = own_bridge
    await bridge.queue("orders")
    path = journal_of(bridge, key)
    await run(bridge, key, b"1")
    copy = path.read_bytes()
    await run(bridge, key, b"2", b"3")
    path.write_bytes(copy)
    await bridge.open(out(key), request_timeout_s=0.5)
    real = Idempotent.publish

    def publish(*arguments: Any, **more: Any) -> None:
        own_server.stop()
        real(*arguments, **more)

    monkeypatch.setattr(Idempotent, "publish", publish)
    existing(key).send(b"4")
    await until(lambda: bridge.log.events("sysv_waits", reason="outcome_unknown"))
    monkeypatch.undo()
    own_server.cont()
    existing(key).send(b"5")
    await until(lambda: has(bridge, [b"1", b"2", b"3", b"4", b"5"]))


async def test_copied_process_gets_a_new_journal_name(bridge: LiveBridge, key: int) -> None:
    """Check that a process in a cloned machine gets a new journal name: the other one has used its next numbers."""
    queue = await bridge.queue("orders")
    await bridge.open(out(key))
    existing(key).send(b"1")
    await carried(bridge, 1)
    name = journal_of(bridge, key).read_bytes()[8:24].hex()
    client = AsyncClient(bridge.tools.open_domain(queue.domain).pipe)
    await bridge.tools.open_domain(queue.domain).pipe.ready()
    await client.publish_once(JournalNumber(name, 3), queue, records.encode(b"the other's"), "sysv")
    for body in (b"2", b"3", b"4", b"5"):
        existing(key).send(body)
    await until(lambda: has(bridge, [b"1", b"the other's", b"2", b"3", b"4", b"5"]))
    assert len(bridge.log.events("journal_stale")) == 1
    await bridge.stop()
    await run(bridge, key, b"6")
    await until(lambda: has(bridge, [b"1", b"the other's", b"2", b"3", b"4", b"5", b"6"]))


async def test_missing_or_damaged_journal_is_replaced(bridge: LiveBridge, key: int, program: Program) -> None:
    """Check that a missing or damaged journal is replaced by one with a name that is new to the store (3.3, 3.7)."""
    queue = await bridge.queue("orders")
    journal = bridge.journal / f"{format_key(key)}.journal"
    expected = []
    for damage in (journal.unlink, lambda: journal.write_bytes(b"x" * 5000), lambda: None):
        await bridge.open(out(key))
        expected += [b"1", b"2"]
        await sent(program, key, 1, b"1", b"2")
        await carried(bridge, 2)
        await bridge.stop()
        damage()
    assert await bridge.bodies(queue) == expected
    assert len(bridge.log.events("journal_damaged")) == 1
