"""Run the smallest edge: it answers frames. It shows what the kit requires of an edge, and simulates faults.

A frame is `u32 length | verb, 1 byte | argument`; an answer is `u32 length | body`. Run it as
`python -m tests.kit.echo_edge --set health.port=0`.
"""

from __future__ import annotations

import asyncio
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path

from pydantic import Field

from protos.types import PeerError
from services.kit.config.flags import Flag
from services.kit.edge import Edge, EdgeContext, EdgeSettings
from services.kit.net.dialler import DialSettings
from services.kit.net.listener import ListenerSettings
from services.kit.readiness import Readiness
from services.kit.session.session import Wire
from services.kit.workers.run import main

LENGTH = struct.Struct(">I")


def frame(verb: bytes, argument: bytes = b"") -> bytes:
    return LENGTH.pack(1 + len(argument)) + verb + argument


class EchoSettings(EdgeSettings):
    listeners: dict[str, ListenerSettings] = Field(default={"echo": ListenerSettings(port=0)})
    frame_timeout_s: float = 30.0
    neighbours: tuple[str, ...] = Field(default=(), description="host:port of those to call when it starts")
    unready_while: Path | None = Field(default=None, description="not ready while this file exists")


class EchoSession:
    """An echo session; `calls` lists the kit's calls for tests."""

    def __init__(self, wire: Wire, frame_timeout_s: float = 30.0, note: Callable[[str], None] | None = None):
        self.wire = wire
        self.calls: list[str] = []
        self.lost_with: bool | None = None
        self.waits_since = 0.0
        self._timeout_s = frame_timeout_s
        self._input = bytearray()
        self._working = 0
        self._ended = False

    def received(self, data: bytes, now: float) -> None:
        self.calls.append("received")
        if not self._input:
            self.waits_since = now
        self._input += data
        self._answer_frames()

    def _answer_frames(self) -> None:
        while not self.wire.is_blocked() and len(self._input) >= LENGTH.size:
            end = LENGTH.size + LENGTH.unpack_from(self._input)[0]
            if len(self._input) < end:
                break
            verb, argument = self._input[4:5], bytes(self._input[5:end])
            del self._input[:end]
            self._answer(bytes(verb), argument)
        if self._ended and not self._input and not self._working:
            self.wire.close()

    def _answer(self, verb: bytes, argument: bytes) -> None:
        match verb:
            case b"E":  # echo
                self.wire.write(LENGTH.pack(len(argument)) + argument)
            case b"F":  # fill: an answer of that many bytes
                size = int(argument)
                self.wire.write(LENGTH.pack(size) + bytes(size))
            case b"W":  # work: an answer after that many seconds
                self._working += 1
                asyncio.get_running_loop().call_later(float(argument), self._done)
            case b"Q":  # quit: an answer, then close
                self.wire.write(LENGTH.pack(0))
                self.wire.close()
            case b"R":  # refuse
                self.wire.refuse("not_today", "asked for it")
            case b"A":  # abort
                self.wire.abort()
            case b"X":  # an internal error
                raise RuntimeError("asked for it")
            case _:
                raise PeerError("bad_verb", f"verb {verb!r}")

    def _done(self) -> None:
        self._working -= 1
        self.wire.write(LENGTH.pack(4) + b"done")
        self._answer_frames()

    def eof(self, now: float) -> None:
        self.calls.append("eof")
        self._ended = True
        self._answer_frames()

    def lost(self, reset: bool) -> None:
        self.calls.append("lost")
        self.lost_with = reset

    def deadline(self) -> float | None:
        return self.waits_since + self._timeout_s if self._input and not self._ended else None

    def on_time(self, now: float) -> None:
        self.calls.append("on_time")
        raise PeerError("request_timeout", f"{len(self._input)} bytes of a frame")

    def resumed(self, now: float) -> None:
        self.calls.append("resumed")
        self.waits_since = now
        self._answer_frames()

    def drain(self) -> None:
        self.calls.append("drain")
        self._ended = True
        if not self._working:
            self.wire.close()

    @property
    def buffered(self) -> int:
        return len(self._input)


class RunningEcho:
    def __init__(self, settings: EchoSettings) -> None:
        self._settings = settings
        self.readiness = Readiness(flag=self._flag_fault)

    def _flag_fault(self) -> str | None:
        flag = self._settings.unready_while
        return "the flag is up" if flag is not None and flag.exists() else None

    async def stop_taking(self) -> None:
        os.write(1, b"stop_taking\n")

    async def close(self) -> None:
        os.write(1, b"close\n")  # whole lines, even if other processes write too


async def start(context: EdgeContext[EchoSettings]) -> RunningEcho:
    timeout_s = context.settings.frame_timeout_s
    for name, settings in context.settings.listeners.items():
        context.listen(name, settings, lambda wire: EchoSession(wire, timeout_s))
    dialler = context.dial("neighbours", DialSettings())
    for neighbour in context.settings.neighbours:
        host, _, port = neighbour.rpartition(":")
        await dialler.connect(host, int(port), lambda wire: EchoSession(wire, timeout_s))
    context.add_page("/echo", lambda: {"frame_timeout_s": timeout_s})
    return RunningEcho(context.settings)


NEIGHBOUR = Flag("--neighbour", "neighbours", "HOST:PORT", "whom to call, 100% of the time", repeatable=True)
TIMEOUT = Flag("--frame-timeout", "frame_timeout_s", "SECONDS", "how long a frame may take")
EDGE = Edge("echo", EchoSettings, start, example=lambda settings: [], flags=(NEIGHBOUR, TIMEOUT))

if __name__ == "__main__":
    sys.exit(main(EDGE))
