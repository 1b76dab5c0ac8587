"""Access local queues in tests, independently of the bridge's code."""

from __future__ import annotations

import random
import subprocess
from contextlib import suppress

import sysv_ipc

ROOM = 1 << 16


class Keys:
    """Keys that no queue had when they were allocated."""

    def __init__(self) -> None:
        self._given: list[int] = []

    def new(self) -> int:
        while True:
            key = random.SystemRandom().randrange(1 << 20, 1 << 31)
            if key not in self._given and find(key) is None:
                self._given.append(key)
                return key

    def remove_all(self) -> None:
        for key in self._given:
            if (queue := find(key)) is not None:
                with suppress(sysv_ipc.ExistentialError):
                    queue.remove()


def find(key: int) -> sysv_ipc.MessageQueue | None:
    try:
        return sysv_ipc.MessageQueue(key, 0, 0, ROOM)
    except sysv_ipc.ExistentialError:
        return None


def make(key: int, mode: int = 0o600) -> sysv_ipc.MessageQueue:
    return sysv_ipc.MessageQueue(key, sysv_ipc.IPC_CREX, mode, ROOM)


def existing(key: int) -> sysv_ipc.MessageQueue:
    queue = find(key)
    assert queue is not None
    return queue


def take_all(key: int) -> list[tuple[bytes, int]]:
    """Return (body, mtype) of all messages that are in the queue now."""
    queue, found = existing(key), []
    with suppress(sysv_ipc.BusyError):
        while True:
            found.append(queue.receive(block=False))
    return found


def shown_by_ipcs(key: int) -> list[str] | None:
    """Return msqid, owner, perms, used bytes and messages as `ipcs` shows them; None if there is no such queue."""
    done = subprocess.run(["ipcs", "-q"], capture_output=True, text=True, check=True)
    lines = map(str.split, done.stdout.splitlines())
    return next((rest for first, *rest in filter(None, lines) if first == f"0x{key:08x}"), None)
