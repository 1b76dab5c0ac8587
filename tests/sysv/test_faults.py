"""Test internal errors: logged with their message, and the mapping restarts (docs/sysv.md 2.7, 3.8)."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from services.store.catalogue.catalogue import Catalogue
from services.store.model import records
from services.sysv import inbound
from services.sysv.inbound import FAULT_TRIES
from services.sysv.places import Places
from tests.live import until
from tests.sysv.live import LiveBridge
from tests.sysv.local import existing, take_all
from tests.sysv.test_inbound import into, settled
from tests.sysv.test_outbound import carried, out

WAITING, FAULTS = "penstock_sysv_waiting", "penstock_local_errors_total"


def faults(bridge: LiveBridge) -> list[str]:
    """Return the logged internal errors, and mark them as expected for the check at the test's end."""
    lines = [line for line in bridge.log.lines if line.exc_info]
    for line in lines:
        line.exc_info = None
    return [line.getMessage() for line in lines]


async def test_priority_with_too_many_digits_is_ignored(bridge: LiveBridge, key: int) -> None:
    """Check that a priority with too many digits is no mtype, and later messages arrive (2.5)."""
    queue = await bridge.queue("orders")
    await bridge.put(queue, b"poison", priority="7" * 5000)
    await bridge.put(queue, b"zeros", priority="0" * 5000 + "42")
    await bridge.open(into(key))
    await settled(bridge, 2)
    assert take_all(key) == [(b"poison", 1), (b"zeros", 42)]


async def test_failing_message_does_not_block_others(
    bridge: LiveBridge, key: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a failing message is tried three times and then becomes a dead letter with its error (2.7)."""
    real, tries = records.decode, []

    def decode(blob: bytes) -> records.Content:
        content = real(blob)
        if content.body == b"poison":
            tries.append(None)
            raise ZeroDivisionError("not foreseen")
        return content

    monkeypatch.setattr(inbound, "FAULT_PAUSE_S", 0.01)
    queue = await bridge.queue("orders")
    await bridge.put(queue, b"before", b"poison", b"behind")
    with monkeypatch.context() as patch:
        patch.setattr(records, "decode", decode)
        await bridge.open(into(key))
        await until(lambda: existing(key).current_messages == 2)
        await settled(bridge, 2)
    assert take_all(key) == [(b"before", 1), (b"behind", 1)]
    (letter,) = await bridge.dead(queue)
    assert (letter.body, letter.reason) == (b"poison", "fault")
    assert letter.error == "ZeroDivisionError('not foreseen')"
    assert len(tries) == FAULT_TRIES
    errors = faults(bridge)
    assert len(errors) == FAULT_TRIES
    assert all(text.startswith("internal error in mapping orders at message ") for text in errors)
    assert bridge.log.events("sysv_waits", reason="fault", mapping="orders")
    assert bridge.value("penstock_sysv_dead_total", mapping="orders", reason="fault") == 1
    assert bridge.value(FAULTS) == FAULT_TRIES
    assert bridge.value(WAITING, mapping="orders") == 0


async def test_failures_are_counted_per_message(
    bridge: LiveBridge, key: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that each message has its own number of tries (2.7)."""
    real, tries = records.decode, Counter[bytes]()

    def decode(blob: bytes) -> records.Content:
        content = real(blob)
        tries[content.body] += 1
        if tries[content.body] < FAULT_TRIES:
            raise ZeroDivisionError("not foreseen")
        return content

    monkeypatch.setattr(inbound, "FAULT_PAUSE_S", 0.01)
    queue = await bridge.queue("orders")
    await bridge.put(queue, b"one", b"two", b"three")
    with monkeypatch.context() as patch:
        patch.setattr(records, "decode", decode)
        await bridge.open(into(key))
        await settled(bridge, 3)
    assert take_all(key) == [(b"one", 1), (b"two", 1), (b"three", 1)]
    assert await bridge.dead(queue) == []
    assert len(faults(bridge)) == 3 * (FAULT_TRIES - 1)


async def test_failed_inbound_mapping_restarts(
    bridge: LiveBridge, key: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that an inbound mapping restarts after an internal error (2.7)."""
    queue = await bridge.queue("orders")
    await bridge.put(queue, b"x")
    real, failed = Catalogue.find, []

    async def find(*arguments: Any) -> Any:
        task = asyncio.current_task()
        if not failed and task is not None and task.get_name() == "sysv orders":
            failed.append(None)
            raise ZeroDivisionError("not foreseen")
        return await real(*arguments)

    monkeypatch.setattr(Catalogue, "find", find)
    await bridge.open(into(key))
    await until(lambda: bridge.value(WAITING, mapping="orders") == 1)
    await settled(bridge, 1)
    assert faults(bridge) == ["internal error in mapping orders: ZeroDivisionError('not foreseen')"]
    assert bridge.log.events("sysv_goes_on", reason="fault")


async def test_failed_outbound_mapping_restarts_from_its_journal(
    bridge: LiveBridge, key: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a restarted outbound mapping carries the message in its journal exactly once, and logs it (3.8)."""
    real, failed = Places.place_of, []

    async def place_of(places: Places, record: Any) -> Any:
        if not failed:
            failed.append(None)
            raise ZeroDivisionError("not foreseen")
        return await real(places, record)

    monkeypatch.setattr(Places, "place_of", place_of)
    queue = await bridge.queue("orders")
    await bridge.open(out(key))
    local = existing(key)
    local.send(b"one")
    local.send(b"two")
    await until(lambda: bridge.value(WAITING, mapping="orders") == 1)
    await carried(bridge, 2)
    assert await bridge.bodies(queue) == [b"one", b"two"]
    (error,) = faults(bridge)
    assert error.startswith("internal error in mapping orders at message 1 of the journal ")
    assert bridge.value(WAITING, mapping="orders") == 0
