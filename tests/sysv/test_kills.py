"""Test kill -9 of the bridge while a program sends and receives (docs/sysv.md 2.2, 3.2, 3.3)."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import subprocess
import threading
from glob import glob
from pathlib import Path

import pytest

from services.store import Queue
from services.sysv.inbound import WINDOW
from tests.live import until
from tests.servers import Server
from tests.sysv.live import LiveBridge
from tests.sysv.local import Keys, make
from tests.sysv.process import BridgeProgram
from tests.sysv.program import Program, parse_line

KILLS = 4
INTO, OUT = 12_000, 1500  # messages for some seconds, more than all the killed bridges carry
TIMING = ("session_timeout_s=2", "heartbeat_s=0.5", "sweep_s=0.3")  # leases of dead sessions return soon


@pytest.fixture
def chance() -> random.Random:
    """Return random numbers that can be repeated."""
    seed = int(os.environ.get("PENSTOCK_TEST_SEED") or secrets.randbits(32))
    print(f"PENSTOCK_TEST_SEED={seed} repeats this")
    return random.Random(seed)


class Receiving(threading.Thread):
    """A thread in which the program receives until it is stopped."""

    def __init__(self, program: Program, key: int) -> None:
        super().__init__()
        self._process = program.start("receive", key, 1 << 30, stdout=subprocess.PIPE)
        self.bodies: list[bytes] = []

    def run(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.bodies.append(parse_line(line.rstrip(b"\n"))[0])

    def end(self) -> None:
        self._process.kill()
        self.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process.wait()


def bodies(number: int, chance: random.Random) -> list[bytes]:
    """Return this many different bodies."""
    return [b"%05d" % index + b"x" * chance.randrange(200) for index in range(number)]


async def kill_again_and_again(
    url: str, folder: Path, options: list[str], chance: random.Random
) -> BridgeProgram:
    """Kill bridges repeatedly, and return the last one, alive."""
    for _ in range(KILLS):
        bridge = BridgeProgram(url, folder, *options)
        await asyncio.to_thread(bridge.started)
        await asyncio.sleep(chance.uniform(0, 0.25))
        bridge.kill9()
    bridge = BridgeProgram(url, folder, *options)
    return await asyncio.to_thread(bridge.started)


async def test_carried_messages_arrive_exactly_once(
    bridge: LiveBridge, server: Server, keys: Keys, program: Program, tmp_path: Path, chance: random.Random
) -> None:
    requests = await bridge.queue("requests", visibilityTimeout="1s")
    replies = await bridge.queue("replies")
    into, out = keys.new(), keys.new()
    make(into), make(out)
    asked, answers = bodies(INTO, chance), bodies(OUT, chance)
    for at in range(0, INTO, 1000):
        await bridge.put(requests, *asked[at : at + 1000])
    receiving = Receiving(program, into)
    receiving.start()
    sending = asyncio.create_task(asyncio.to_thread(program.send, out, 1, *answers))
    options = ["--in", f"{into}:requests", "--out", f"{out}:replies"]
    options += [word for setting in TIMING for word in ("--set", f"sysv.store.{setting}")]
    last = await kill_again_and_again(server.url, tmp_path, options, chance)
    try:
        await sending
        await until(lambda: all_are_there(bridge, replies), 60)
        await until(lambda: len(receiving.bodies) >= INTO and set(asked) <= set(receiving.bodies), 60)
        assert await asyncio.to_thread(last.stop) == 0
    finally:
        last.kill9()
        receiving.end()
    stats = await bridge.stats(replies)
    assert stats["added"] == OUT
    assert await bridge.take_all(replies) == answers  # each once, in order
    assert set(receiving.bodies) == set(asked)
    assert len(receiving.bodies) - INTO <= KILLS * WINDOW
    assert glob("*.damaged-*", root_dir=tmp_path / "penstock-sysv") == []


async def all_are_there(bridge: LiveBridge, queue: Queue) -> bool:
    return bool((await bridge.stats(queue))["added"] >= OUT)
