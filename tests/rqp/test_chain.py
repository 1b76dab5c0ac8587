"""TMQ, RQP/MCA, RQP/cast and a C program that uses System V queues, in one chain over two systems.

Nothing is simulated: two `penstock up`, a `penstock sysv`, the compiled program, a TMQ client, and the program of
docs/rqp-mca.md, "Forwarding": a queue that others fill is never a transmission queue (rqp_mca.md 2.4), so a system
passes messages on by an explicit program.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from services.system.pdeathsig import die_with_parent
from tests.cli.shell import Shell, Up, running
from tests.live import until
from tests.rqp.cast.net import HERE, THERE, port_range
from tests.servers import free_port
from tests.sysv.local import Keys
from tests.sysv.process import BridgeProgram
from tests.sysv.program import Program
from tests.tmq.client import Client
from tests.tmq.process import ROOT

PASS_ON = ROOT / "docs" / "examples" / "rqp" / "pass_on.py"
BODIES = [b"first", bytes(range(32, 127)), b"x" * 8000, b"last"]

QUEUE = """
apiVersion: penstock.dev/v1alpha1
kind: Queue
metadata: {{name: {0}}}
spec: {1}
---"""

NEAR = {  # the system with the old program
    "requests": "{remote: {protocol: rqp-mca, queueId: 7, peers: [far]}}",
    "for-program": "{bindings: {rqpCast: {key: 9}}}",
    "from-program": "{remote: {protocol: rqp-cast, key: 11}}",
    "answers": "{bindings: {rqpMca: {queueId: 8}}}",
}
FAR = {
    "requests-in": "{bindings: {rqpMca: {queueId: 7}}}",
    "requests-back": "{remote: {protocol: rqp-cast, key: 9}}",
    "answers-in": "{bindings: {rqpCast: {key: 11}}}",
    "answers-back": "{remote: {protocol: rqp-mca, queueId: 8, peers: [near]}}",
}
CONFIG = """
edges:
  rqp:
    mca:
      peers: {{{peer}: {{addresses: ["127.0.0.1:{port}"], window: 10}}}}
    cast:
      host: {host}
      peers: {{{peer}: {{addresses: ["{other}:{request_port}"]}}}}
"""


class Systems:
    """Two systems, `near` and `far`, up: each knows the address of the other."""

    def __init__(self, folder: Path) -> None:
        mca = {"near": free_port(), "far": free_port()}
        cast = {"REQUEST_PORT": str(free_port()), "FINDRECEIVER_PORT": str(free_port())}
        self._shells = {}
        for name, peer, host, other in (("near", "far", HERE, THERE), ("far", "near", THERE, HERE)):
            (folder / name).mkdir()
            own = {**cast, "RECEIVER_PORTS": port_range(), "SENDER_PORTS": port_range()}
            by_name = {f"PENSTOCK_EDGES__RQP__CAST__{key}": value for key, value in own.items()}
            by_name["PENSTOCK_EDGES__RQP__LISTENERS__MCA__PORT"] = str(mca[name])
            shell = self._shells[name] = Shell(folder / name, by_name)
            places = {"host": host, "other": other, "request_port": cast["REQUEST_PORT"]}
            shell.write("penstock.yaml", CONFIG.format(peer=peer, port=mca[peer], **places))
            queues = NEAR if name == "near" else FAR
            shell.write("queues.yaml", "".join(QUEUE.format(*queue) for queue in queues.items()))
        self.near: Up
        self.far: Up

    def start(self, stack: ExitStack) -> None:
        self.near, self.far = (stack.enter_context(running(shell)) for shell in self._shells.values())


@pytest.fixture(scope="module")
def systems(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Systems]:
    with ExitStack() as stack:
        systems = Systems(tmp_path_factory.mktemp("systems"))
        systems.start(stack)
        yield systems


@pytest.fixture
def keys() -> Iterator[Keys]:
    keys = Keys()
    yield keys
    keys.remove_all()


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program.compiled(tmp_path)


@pytest.fixture
async def near(systems: Systems) -> AsyncIterator[Client]:
    async with await Client.connect(systems.near.place()) as client:
        yield client


class PassOn:
    """The program docs/examples/rqp/pass_on.py at a system, within `with`."""

    def __init__(self, up: Up, source: str, goal: str) -> None:
        place = str(up.place()[1])
        self._process = subprocess.Popen(
            [sys.executable, PASS_ON, place, source, goal],
            start_new_session=True,
            preexec_fn=partial(die_with_parent, os.getpid()),
        )

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        assert self._process.poll() is None, "it ended early"
        self._process.kill()
        self._process.wait()


async def test_from_tmq_by_mca_and_by_cast_to_msgrcv(
    systems: Systems, near: Client, keys: Keys, program: Program, tmp_path: Path
) -> None:
    """Check a chain from TMQ by RQP to msgrcv: each message once, in order, octet for octet.

    TMQ, MCA (3), a second system, TMQ, cast (3), sysv.md 2, msgrcv.
    """
    key = keys.new()
    bridge = BridgeProgram(systems.near.tenant["url"], tmp_path, "--in", f"{key}:for-program")
    try:
        await asyncio.to_thread(bridge.started)
        requests = await near.open(b"requests")
        assert requests is not None
        await near.put(requests, *BODIES)
        with PassOn(systems.far, "requests-in", "requests-back"):
            arrived = await asyncio.to_thread(program.receive, key, len(BODIES))
    finally:
        bridge.kill9()
    assert arrived == [(body, 1) for body in BODIES]


async def test_from_msgsnd_by_cast_and_by_mca_to_tmq(
    systems: Systems, near: Client, keys: Keys, program: Program, tmp_path: Path
) -> None:
    """Check a chain in the other direction: msgsnd, sysv.md 3, cast (3), a second system, TMQ, MCA (3), DNQ."""
    key = keys.new()
    bridge = BridgeProgram(systems.near.tenant["url"], tmp_path, "--out", f"{key}:from-program")
    try:
        await asyncio.to_thread(bridge.started)
        await asyncio.to_thread(program.send, key, 5, *BODIES)
        answers = await near.open(b"answers")
        assert answers is not None
        with PassOn(systems.far, "answers-in", "answers-back"):
            await until(lambda: _holds(near, answers, len(BODIES)))
        assert await near.drain(answers) == BODIES
    finally:
        bridge.kill9()


async def _holds(client: Client, queue: bytes, count: int) -> bool:
    return await client.select(queue) == count
