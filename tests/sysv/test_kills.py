"""The bridge is killed with -9 while an old program sends and receives (docs/sysv.md 2.2, 3.2, 3.3)."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import subprocess
import threading
from collections import Counter
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

KILLS = 8
MESSAGES = 2000  # each way
TIMING = ("session_timeout_s=2", "heartbeat_s=0.5", "sweep_s=0.3")  # leases of the dead come back soon


@pytest.fixture
def chance() -> random.Random:
    """Randomness that can be repeated."""
    seed = int(os.environ.get("PENSTOCK_TEST_SEED") or secrets.randbits(32))
    print(f"PENSTOCK_TEST_SEED={seed} repeats this")
    return random.Random(seed)


class Receiving(threading.Thread):
    """The program receives until it is told to end."""

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


async def kill_again_and_again(
    url: str, folder: Path, options: list[str], chance: random.Random
) -> BridgeProgram:
    """Answers the last one, alive."""
    for _ in range(KILLS):
        bridge = BridgeProgram(url, folder, *options)
        await asyncio.to_thread(bridge.started)
        await asyncio.sleep(chance.uniform(0, 0.25))
        bridge.kill9()
    bridge = BridgeProgram(url, folder, *options)
    return await asyncio.to_thread(bridge.started)


async def test_nothing_is_lost_and_what_comes_out_is_there_once(
    bridge: LiveBridge, server: Server, keys: Keys, program: Program, tmp_path: Path, chance: random.Random
) -> None:
    requests = await bridge.queue("requests", visibilityTimeout="1s")
    replies = await bridge.queue("replies")
    into, out = keys.new(), keys.new()
    make(into), make(out)
    wanted = [b"%05d" % number + b"x" * chance.randrange(200) for number in range(MESSAGES)]
    for at in range(0, MESSAGES, 1000):
        await bridge.put(requests, *wanted[at : at + 1000])
    receiving = Receiving(program, into)
    receiving.start()
    sending = asyncio.create_task(asyncio.to_thread(program.send, out, 1, *wanted))
    options = ["--in", f"{into}:requests", "--out", f"{out}:replies"]
    options += [word for setting in TIMING for word in ("--set", f"sysv.store.{setting}")]
    last = await kill_again_and_again(server.url, tmp_path, options, chance)
    try:
        await sending
        await until(lambda: all_are_there(bridge, replies), 60)
        await until(lambda: set(wanted) <= set(receiving.bodies), 60)
        assert await asyncio.to_thread(last.stop) == 0
    finally:
        last.kill9()
        receiving.end()
    stats = await bridge.stats(replies)
    assert stats["added"] == MESSAGES
    assert await bridge.take_all(replies) == wanted  # each once, in order
    told = Counter(receiving.bodies)
    assert set(told) == set(wanted)
    assert sum(told.values()) - MESSAGES <= (KILLS + 1) * WINDOW
    assert glob("*.damaged-*", root_dir=tmp_path / "penstock-sysv") == []


async def all_are_there(bridge: LiveBridge, queue: Queue) -> bool:
    return bool((await bridge.stats(queue))["added"] >= MESSAGES)
