"""Sending agents with a missing address, without the store or with internal errors (rqp_cast.md 1.2, 4)."""

from __future__ import annotations

import asyncio
import gc
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from protos.rqp_cast import DataMsg, encode_data
from services.kit.config.layers import SettingsError
from services.rqp.cast.sending import attempt
from services.rqp.cast.sending.attempt import Attempt, Outcome
from services.rqp.cast.sending.prefetch_buffer import Ids
from services.store import Delivery, Source
from services.store.model.errors import StoreUnavailable
from services.store.model.operations import Done
from services.store.pipeline.messages import Messages
from tests.live import set_up, until
from tests.rqp.cast.hands import HandReceiver
from tests.rqp.cast.net import HERE, THERE, Net, failed, got_through, remote
from tests.rqp.live import LiveEdge
from tests.servers import PROGRAMS, Server
from tests.sysv.namespace import own_machine

LAN = "10.83.1.1"  # an address that the edge's machine has only at times


def lan(what: str) -> None:
    subprocess.run(["ip", "addr", what, f"{LAN}/32", "dev", "lo"], check=True)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Server]:
    """Create a network namespace with a store."""
    with own_machine():
        lan("add")
        server = Server(next(iter(PROGRAMS)), tmp_path / "store").start()
        yield server
        server.end()


@pytest.fixture
def net() -> Net:
    return Net()


@pytest.fixture
async def sender(net: Net, machine: Server) -> AsyncIterator[LiveEdge]:
    await set_up(machine)
    edge = await LiveEdge(machine.url, cast=net.machine(LAN, THERE, receives=False)).start()
    yield edge
    await edge.close()
    edge.check_no_fault_of_ours()


async def test_certain_message_waits_for_a_missing_address(net: Net, sender: LiveEdge) -> None:
    """Check that a certain message waits for a missing address (1.2).

    It waits for a port, and the condition says so; this is not an internal error.
    """
    queue = await remote(sender)
    with HandReceiver(net, THERE, LAN) as receiver:
        await sender.put(queue, b"first")
        assert await receiver.receive() == b"first"
        lan("del")
        await sender.put(queue, b"second")
        text = f"no_port: this machine does not have the address {LAN} now"
        await until(lambda: sender.has_condition(queue, text))
        lan("add")
        assert await receiver.receive() == b"second"
        await until(lambda: sender.has_no_condition(queue))
        await until(lambda: sender.is_empty(queue))


async def test_uncertain_message_waits_for_a_missing_address(net: Net, sender: LiveEdge) -> None:
    """Check that an uncertain message waits for a missing address (4.1).

    Its question cannot be sent, so there is no answer; the condition says why.
    """
    queue = await remote(sender, reliable=False)
    with HandReceiver(net, THERE, LAN) as receiver:
        lan("del")
        await sender.put(queue, b"perhaps")
        text = f"no_answer: this machine does not have the address {LAN} now"
        await until(lambda: sender.has_condition(queue, text))
        lan("add")
        await receiver.chosen()
        assert (await receiver.data())[12:] == b"perhaps"
        await until(lambda: sender.has_no_condition(queue))


async def test_store_failure_while_ids_are_written_is_handled(
    net: Net, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a store failure while ids are written is handled (2.3).

    The first message's id cannot be stored; the second one gets none.
    """
    edge = await LiveEdge(server.url, cast=net.machine(HERE, THERE, receives=False)).start()
    next_id, write_note, asked = Ids.next, Messages.note, list[str]()

    async def next_once(ids: Ids) -> int:
        asked.append("id")
        if asked.count("id") == 2:
            await asyncio.sleep(0)  # the first note is under way by now, if notes do not wait for all ids
            raise StoreUnavailable("away")
        return await next_id(ids)

    def note_later(verbs: Messages, source: Source, delivery: Delivery, note: str, done: Done) -> None:
        asked.append("note")
        if asked.count("note") == 1 and asked.count("id") <= 2:
            done(StoreUnavailable("away"))
        else:
            write_note(verbs, source, delivery, note, done)

    monkeypatch.setattr(Ids, "next", next_once)
    monkeypatch.setattr(Messages, "note", note_later)
    queue = await remote(edge)
    await edge.put(queue, b"first", b"second")
    with HandReceiver(net) as receiver:
        assert [await receiver.receive(), await receiver.receive()] == [b"first", b"second"]
        await until(lambda: edge.is_empty(queue))
    assert asked.count("id") >= 4
    gc.collect()
    await asyncio.sleep(0)
    edge.check_no_fault_of_ours()
    await edge.close()


async def test_start_fails_without_the_configured_address(net: Net, server: Server) -> None:
    """Check that the start fails with an error without the configured address (1.2)."""
    edge = LiveEdge(server.url, cast=net.machine("192.0.2.1", THERE, receives=False))
    with pytest.raises(SettingsError, match=r"from 192\.0\.2\.1: Cannot assign"):
        await edge.start()
    await edge.close()


async def test_internal_error_returns_the_message(
    net: Net, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that an internal error returns the message to its queue (4.3).

    The error is logged and counted, and the message is retried.
    """
    edge = await LiveEdge(server.url, cast=net.machine(HERE, THERE, receives=False)).start()
    run = Attempt.run
    stumbles = True

    async def stumble(attempt: Attempt) -> Outcome:
        if stumbles:
            raise ZeroDivisionError
        return await run(attempt)

    monkeypatch.setattr(Attempt, "run", stumble)
    queue = await remote(edge)
    with HandReceiver(net) as receiver:
        await edge.put(queue, b"hello")

        text = "local_error: internal error, see the log: ZeroDivisionError()"
        await until(lambda: edge.has_condition(queue, text))
        assert edge.value("penstock_local_errors_total")
        await until(lambda: edge.bodies(queue))
        stumbles = False
        assert await receiver.receive() == b"hello"
        await until(lambda: edge.is_empty(queue))
        await until(lambda: edge.has_no_condition(queue))
    assert (failed(edge, "no_answer"), got_through(edge)) == (0, 1)
    await edge.close()


async def test_message_that_always_causes_errors_is_dead_lettered(
    net: Net, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a message that always causes errors is dead-lettered, also for errors during DATA_MSG (4.3).

    Later messages are sent.
    """
    edge = await LiveEdge(server.url, cast=net.machine(HERE, THERE, receives=False)).start()

    def stumble(message: DataMsg) -> bytes:
        if message.record.endswith(b"bad"):
            raise ZeroDivisionError
        return encode_data(message)

    monkeypatch.setattr(attempt, "encode_data", stumble)
    queue = await remote(edge, spec={"maxDeliveries": 2})
    with HandReceiver(net) as receiver:
        await edge.put(queue, b"bad", b"good")
        for _ in range(2):
            await receiver.chosen()
            assert await receiver.data() == b""
        assert await receiver.receive() == b"good"
        await until(lambda: edge.is_empty(queue))
    (letter,) = await edge.dead(queue)
    assert (letter.body, letter.reason) == (b"bad", "max_deliveries")
    assert edge.value("penstock_local_errors_total") == 2
    await edge.close()
