"""The store side of the measure "store alone": the real function, called as an edge calls it, over bare RESP."""

from __future__ import annotations

import struct
from typing import Any

import hiredis
import redis

from benchmarks.peers.peer import BODY
from services.store.model.keys import DomainKeys
from services.store.model.records import PER_ENTRY
from services.store.model.spec import QueueSpec
from services.store.redis.library import source

EPOCH, SESSION, QID = "bench.1", "bench", "q1"
TAKE_BYTES = 4 << 20
SPEC = QueueSpec(ack_level="fsync")
REPLY_FIELDS = 8  # of one range in the reply to a take (lua/take.lua)
RECORD = struct.pack(">I", len(BODY)) + BODY


def make_side(port: int) -> StoreSide:
    return StoreSide(port)


class StoreSide:
    def __init__(self, port: int) -> None:
        keys = DomainKeys("bench")
        queue = keys.queue(QID)
        with redis.Redis(port=port) as server:
            server.execute_command("FUNCTION", "LOAD", "REPLACE", source())
            server.set(keys.epoch, EPOCH)
            named = (keys.epoch, queue[1], *keys.bindings)
            server.fcall("ps1_declare", len(named), *named, EPOCH, QID, SESSION, "", *SPEC.fields())
            server.fcall(
                "ps1_session", 3, keys.epoch, keys.sessions, keys.lane(SESSION), EPOCH, SESSION, "open"
            )
        own = (keys.epoch, keys.sessions, keys.lane(SESSION), keys.lots(SESSION), *keys.log[:3])
        self._keys = (*own, *queue)
        self._wake = keys.wake_channel
        self._sequence = 0
        self._publishes: dict[int, list[Any]] = {}

    def _call(self, operations: list[Any]) -> bytes:
        self._sequence += 1
        head = (EPOCH, SESSION, self._sequence, 0, self._wake, 1)
        return hiredis.pack_command(
            ("FCALL", "ps1_work_timed", len(self._keys), *self._keys, *head, *operations)
        )

    def publish(self, messages: int) -> bytes:
        return self._call(self._publish(messages))

    def _publish(self, messages: int) -> list[Any]:
        """Return the operation P; the same bytes for the same number."""
        if messages not in self._publishes:
            sizes = [min(PER_ENTRY, messages - at) for at in range(0, messages, PER_ENTRY)]
            entries = [part for size in sizes for part in (size, size * len(BODY), RECORD * size)]
            self._publishes[messages] = ["P", 0, "bench 127.0.0.1", "", len(sizes), *entries]
        return self._publishes[messages]

    def step(self, taken: object, publish: int, want: int) -> tuple[list[tuple[str, bytes]], int]:
        """Return one call for all operations, as for clients with one request at a time."""
        # the last reply of a call is the store's time
        settle, count = _settle(taken[-2] if isinstance(taken, list) else [])
        operations = [*settle, *(self._publish(publish) if publish else []), "T", 0, want, TAKE_BYTES]
        return [("take", self._call(operations))], count


def _settle(reply: list[Any]) -> tuple[list[Any], int]:
    """Return the operation A for all messages of a take's reply, and their number."""
    acks: list[Any] = []
    settled = 0
    for at in range(1, len(reply), REPLY_FIELDS):
        lot, entry, size, start, count = reply[at : at + 5]
        acks += (lot, entry, size, ((1 << count) - 1) << start, count * len(BODY))
        settled += count
    return (["A", 0, len(acks) // 5, *acks] if acks else []), settled
