"""Test that messages are on the journal's disk before they are published (docs/sysv.md 3.2, 3.7)."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from services.sysv.record import Record, parse
from services.sysv.settings import format_key
from tests.live import until
from tests.sysv.live import LiveBridge
from tests.sysv.local import existing
from tests.sysv.test_outbound import carried, out

PATIENCE_S = 60.0


class Disk:
    """A record of all fdatasync calls of this process, which can be delayed or made to fail."""

    def __init__(self, real: Callable[[int], None]) -> None:
        self._real = real
        self._free = threading.Event()
        self._free.set()
        self.faults = 0  # number of next calls that fail
        self.asked: list[Record | None] = []  # contents of the file at each call
        self.done = 0

    def hold(self) -> None:
        self._free.clear()

    def release(self) -> None:
        self._free.set()

    def sync(self, fd: int) -> None:
        self.asked.append(parse(Path(f"/proc/self/fd/{fd}").read_bytes()))
        assert self._free.wait(PATIENCE_S)
        if self.faults:
            self.faults -= 1
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._real(fd)
        self.done += 1


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk(os.fdatasync)
    monkeypatch.setattr(os, "fdatasync", disk.sync)
    yield disk
    disk.release()


async def test_message_is_flushed_before_it_is_published(disk: Disk, bridge: LiveBridge, key: int) -> None:
    """Check that a message is published and the next one received only after its flush, and nothing else is delayed."""
    queue = await bridge.queue("orders")
    await bridge.open(out(key))
    disk.hold()
    for body in (b"first", b"second"):
        existing(key).send(body)
    await until(lambda: disk.asked)
    (record,) = disk.asked
    assert record is not None
    assert record.body == b"first"
    assert (await bridge.bodies(queue), existing(key).current_messages) == ([], 1)
    disk.release()
    await carried(bridge, 2)
    assert await bridge.bodies(queue) == [b"first", b"second"]
    assert disk.done == 2


async def test_failing_disk_is_reported(disk: Disk, bridge: LiveBridge, key: int) -> None:
    """Check that a failed flush is logged, and that the message is published at once, which makes it safe."""
    queue = await bridge.queue("orders")
    await bridge.open(out(key))
    disk.faults = 2
    bodies = [b"1", b"2", b"3"]
    for body in bodies:
        existing(key).send(body)
    await carried(bridge, 3)
    assert await bridge.bodies(queue) == bodies
    (event, *_) = bridge.log.events("sysv_waits", reason="no_sync")
    journal = bridge.journal / f"{format_key(key)}.journal"
    assert (
        event.getMessage()
        == f"the journal {journal} was not flushed to the disk: [Errno 5] Input/output error"
    )
    assert bridge.log.events("sysv_goes_on", reason="no_sync")
