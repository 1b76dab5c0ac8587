"""The prototype as a store side: publish, take and settle are calls of their own (see prototype.lua)."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import hiredis
import redis

from benchmarks.peers.peer import BODY

KEYS = tuple("ps:{d}:" + name for name in ("s", "q", "l", "r", "f", "m", "ses", "lane:base", "epoch", "d"))
PER_ENTRY = 32
REPLY_FIELDS = 6  # of one range in the reply to a take
RECORD = struct.pack(">I", len(BODY)) + BODY
LIBRARY = Path(__file__).with_name("prototype.lua")


class StoreSide:
    def __init__(self, port: int) -> None:
        with redis.Redis(port=port) as server:
            server.execute_command("FUNCTION", "LOAD", "REPLACE", LIBRARY.read_text("utf-8"))
            server.set(KEYS[8], "E1")
            server.fcall("f_beat", len(KEYS), *KEYS, "base", 99999, 1)
        self._sequence = 0

    def _call(self, function: str, *arguments: Any) -> bytes:
        self._sequence += 1
        return hiredis.pack_command(
            ("FCALL", function, len(KEYS), *KEYS, "E1", "base", self._sequence, *arguments)
        )

    def publish(self, messages: int) -> bytes:
        sizes = [min(PER_ENTRY, messages - at) for at in range(0, messages, PER_ENTRY)]
        return self._call(
            "f_pub", *(part for size in sizes for part in (size, size * len(BODY), RECORD * size))
        )

    def step(self, taken: object, publish: int, want: int) -> tuple[list[tuple[str, bytes]], int]:
        calls: list[tuple[str, bytes]] = []
        acks, settled = _acks(taken if isinstance(taken, list) else [])
        if acks:
            calls.append(("settle", self._call("f_settle", *acks, "|")))
        if publish:
            calls.append(("publish", self.publish(publish)))
        calls.append(("take", self._call("f_take", want)))
        return calls, settled


def _acks(reply: list[Any]) -> tuple[list[Any], int]:
    acks: list[Any] = []
    settled = 0
    for at in range(0, len(reply), REPLY_FIELDS):
        lot, entry, size, start, count = reply[at : at + 5]
        acks += (lot, entry, size, ((1 << count) - 1) << start, count * len(BODY))
        settled += count
    return acks, settled


def make_side(port: int) -> StoreSide:
    return StoreSide(port)
