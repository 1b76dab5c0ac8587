"""Test the size of journals and its cost (docs/sysv.md 3.2, 3.7)."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from services.sysv.journal import MAX_SIZE
from services.sysv.kernel import LocalQueue, msgmax
from services.sysv.record import BODY_AT
from services.sysv.settings import format_key
from tests.live import until
from tests.sysv.live import LiveBridge
from tests.sysv.local import existing, make
from tests.sysv.namespace import set_limit
from tests.sysv.test_outbound import carried, out


def journal_of(bridge: LiveBridge, key: int) -> Path:
    return bridge.journal / f"{format_key(key)}.journal"


async def test_largest_message_of_the_kernel(bridge: LiveBridge, key: int) -> None:
    """Check that the journal has room for the largest message before it receives any."""
    queue = await bridge.queue("orders")
    await bridge.open(out(key))
    assert journal_of(bridge, key).stat().st_size == BODY_AT + msgmax()
    existing(key).send(b"z" * msgmax())
    await until(lambda: bridge.bodies(queue))
    assert await bridge.bodies(queue) == [b"z" * msgmax()]


@pytest.mark.usefixtures("own_kernel")
async def test_large_msgmax_does_not_slow_small_messages(
    bridge: LiveBridge, key: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that the kernel is offered, and the journal has, no more space than the store's largest message needs."""
    set_limit("msgmax", (1 << 31) - 1)
    written: list[int] = []
    offered: list[int] = []
    pwrite, peek = os.pwrite, LocalQueue.peek

    def counting_pwrite(fd: int, data: bytes, offset: int) -> int:
        written.append(len(data))
        return pwrite(fd, data, offset)

    def counting_peek(queue: LocalQueue, address: int, room: int) -> int | None:
        offered.append(room)
        return peek(queue, address, room)

    await bridge.queue("orders")
    await bridge.open(out(key))
    monkeypatch.setattr(os, "pwrite", counting_pwrite)
    monkeypatch.setattr(LocalQueue, "peek", counting_peek)
    assert journal_of(bridge, key).stat().st_size == MAX_SIZE
    for number in range(20):
        existing(key).send(b"%02d" % number)
    await carried(bridge, 20)
    assert sum(written) == 20 * (BODY_AT + 2)
    assert max(offered) <= 8192


@pytest.mark.usefixtures("own_kernel")
@pytest.mark.parametrize("can_peek", [True, False], ids=["peek", "no_peek"])
async def test_messages_of_all_sizes(
    bridge: LiveBridge, key: int, monkeypatch: pytest.MonkeyPatch, can_peek: bool
) -> None:
    """Check messages of all sizes, also on a kernel that cannot show them in advance."""
    if not can_peek:
        monkeypatch.setattr(LocalQueue, "peek", lambda *_: None)
    set_limit("msgmax", 65_536)
    set_limit("msgmnb", 1 << 20)
    queue = await bridge.queue("orders")
    await bridge.open(out(key))
    bodies = [b"x" * size for size in (0, 8192, 1, 8193, 40_000, 65_536, 7)]
    for body in bodies:
        existing(key).send(body)
    await carried(bridge, len(bodies))
    assert await bridge.bodies(queue) == bodies


async def test_message_received_by_another_after_the_peek(
    bridge: LiveBridge, key: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a larger message than the one peeked at stays in its queue and is peeked at, too (3.7)."""
    real = LocalQueue.peek
    stolen: list[object] = []

    def peek(queue: LocalQueue, address: int, room: int) -> int | None:
        size = real(queue, address, room)
        if size == len(b"small"):
            stolen.append(existing(key).receive(block=False))
        return size

    monkeypatch.setattr(LocalQueue, "peek", peek)
    queue = await bridge.queue("orders")
    local = make(key)
    local.send(b"small")
    local.send(b"larger")
    await bridge.open(out(key))
    await carried(bridge, 1)
    assert stolen == [(b"small", 1)]
    assert journal_of(bridge, key).stat().st_size == BODY_AT + msgmax()  # no more space was needed
    assert await bridge.bodies(queue) == [b"larger"]


@pytest.mark.usefixtures("own_kernel")
async def test_failed_growth_changes_nothing(
    bridge: LiveBridge, key: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a failed growth is logged and tried again, with the journal unchanged (3.7)."""
    faults = 3
    real = os.fsync

    def fsync(fd: int) -> None:
        nonlocal faults
        faults -= 1
        if faults >= 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(fd)

    set_limit("msgmnb", 1 << 20)
    queue = await bridge.queue("orders")
    await bridge.open(out(key))
    set_limit("msgmax", 20_000)
    monkeypatch.setattr(os, "fsync", fsync)
    for body in (b"before", b"x" * 20_000):
        existing(key).send(body)
    await carried(bridge, 2)
    assert faults < 0
    assert await bridge.bodies(queue) == [b"before", b"x" * 20_000]
    (event,) = bridge.log.events("sysv_waits", reason="no_space")
    assert "has no room for 16,384 octets: Input/output error" in event.getMessage()
