"""What metrics of each queue cost an edge: python -m benchmarks.metrics_cost [ROUNDS]

Three TMQ edges, each on a store of its own, are loaded by turns with the same work over QUEUES queues: without metrics
of queues, with them, and with histograms, too. Printed are medians over all rounds: messages a second, processor time
of the edge's process for each message, and for one scrape in which all queues have something new. A scrape is every
15 to 30 s.
"""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.request import urlopen

from protos import tmq
from services.store import QueueSpec, Store, StoreError
from services.store.embedded import EmbeddedSettings, EmbeddedStore

T = TypeVar("T")
MODES: dict[str, tuple[str, ...]] = {
    "off": (),
    "on": ("metrics.queues=on",),
    "on, latencies": ("metrics.queues=on", "metrics.queue_latencies=on"),
}
QUEUES = 200
RUN = 50  # requests that are sent together
ROUND_S = 0.5  # short, and many of them: whatever else the machine does meets all three
SCRAPES = 2
BODY = b"x" * 100
ENQ_REPLY = tmq.reply_bytes(tmq.Dialect.DOCUMENT, tmq.Operation.ENQ)


class Edge:
    def __init__(self, folder: Path, settings: tuple[str, ...]) -> None:
        folder.mkdir()
        self._store = EmbeddedStore(EmbeddedSettings(folder / "store", "", 0, 1 << 30))
        self._folder, self._settings = folder, settings
        self._lines: list[tuple[socket.socket, bytes]] = []

    @contextmanager
    def running(self) -> Iterator[Edge]:
        folder = self._folder
        (folder / "store").mkdir()
        with subprocess.Popen(
            self._store.command(), cwd=folder / "store", stdout=subprocess.DEVNULL
        ) as server:
            try:
                wait_for(self._set_up_once)
                yield from self._serve()
            finally:
                server.send_signal(signal.SIGKILL)

    def _set_up_once(self) -> bool:
        asyncio.run(self._set_up())
        return True

    async def _set_up(self) -> None:
        store = Store(self._store.url, "benchmark")
        try:
            await store.initialise()
            for number in range(QUEUES):
                await store.declare(f"q{number}", QueueSpec(), "benchmark")
        finally:
            await store.close()

    def _serve(self) -> Iterator[Edge]:
        words = ["edges.tmq.listeners.document.port=0", "edges.tmq.listeners.reference=off", "health.port=0"]
        pairs = [word for pair in (*words, *self._settings) for word in ("--set", pair)]
        command = [
            sys.executable,
            "-m",
            "services.cli.main",
            "serve",
            "tmq",
            "--store",
            self._store.url,
            *pairs,
        ]
        log = self._folder / "log"
        with log.open("wb") as out, subprocess.Popen(command, stderr=out, stdout=out) as process:
            try:
                self._pid = process.pid
                port = wait_for(lambda: re.search(r'"listening".*"port": (\d+)', log.read_text()))
                health = wait_for(lambda: re.search(r'"health_listening".*"port": (\d+)', log.read_text()))
                self._metrics = f"http://127.0.0.1:{health[1]}/metrics"
                self._lines = [self._open(int(port[1]), number) for number in range(QUEUES)]
                yield self
            finally:
                process.send_signal(signal.SIGKILL)

    def _open(self, port: int, number: int) -> tuple[socket.socket, bytes]:
        def once() -> tuple[socket.socket, bytes]:
            line = socket.create_connection(("127.0.0.1", port), 10)
            line.settimeout(None)
            line.sendall(tmq.encode_open(b"q%d" % number))
            mqid = tmq.parse_mqid(line.recv(tmq.MQID_BYTES, socket.MSG_WAITALL))
            assert mqid is not None
            return line, mqid

        return wait_for(once)

    def load(self) -> tuple[float, float, float]:
        """Messages a second, microseconds of processor time for each, milliseconds of it for a scrape."""
        began, used, number = time.monotonic(), self._used_s(), 0
        while time.monotonic() - began < ROUND_S:
            number += self.once()
        rate, each = number / (time.monotonic() - began), (self._used_s() - used) / number * 1e6
        return rate, each, self._scrape_s() * 1000

    def once(self) -> int:
        """Each queue gets a run of messages, and gives it again."""
        return sum(self._batch(self._lines[first : first + 20]) for first in range(0, QUEUES, 20))

    def _scrape_s(self) -> float:
        """The mean of some, each with something new."""
        total = 0.0
        for _ in range(SCRAPES):
            self.once()
            used = self._used_s()
            urlopen(self._metrics, timeout=10).read()
            total += self._used_s() - used
        return total / SCRAPES

    def _batch(self, lines: list[tuple[socket.socket, bytes]]) -> int:
        for line, mqid in lines:
            line.sendall(tmq.encode_enq(mqid, BODY) * RUN)
        for line, _ in lines:
            line.recv(ENQ_REPLY * RUN, socket.MSG_WAITALL)
        for line, mqid in lines:
            line.sendall(tmq.encode_dnq(mqid) * RUN)
        for line, _ in lines:
            line.recv((4 + len(BODY)) * RUN, socket.MSG_WAITALL)
        return RUN * len(lines)

    def _used_s(self) -> float:
        """Of all its threads."""
        tasks = Path(f"/proc/{self._pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def wait_for(what: Callable[[], T | None]) -> T:
    end = time.monotonic() + 60
    while True:
        try:
            if (found := what()) is not None:
                return found
        except (OSError, StoreError, AssertionError):
            if time.monotonic() > end:
                raise
        time.sleep(0.1)


Measured = tuple[float, float, float]  # messages a second, us of processor time a message, ms of it a scrape


def by_turns(modes: dict[str, tuple[str, ...]], rounds: int) -> dict[str, list[Measured]]:
    """Edges with these settings, side by side, which are loaded one after the other; the first round warms up."""
    found: dict[str, list[Measured]] = {mode: [] for mode in modes}
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder, ExitStack() as stack:
        edges = {
            mode: stack.enter_context(Edge(Path(folder) / str(number), settings).running())
            for number, (mode, settings) in enumerate(modes.items())
        }
        for number in range(rounds + 1):
            for mode, edge in edges.items():
                measured = edge.load()
                if number:
                    found[mode].append(measured)
    return found


def report(found: dict[str, list[Measured]]) -> None:
    """Medians, and those of the rounds' ratios to the first mode."""
    first = next(iter(found.values()))
    for mode, measured in found.items():
        rate, each, scrape = (statistics.median(one) for one in zip(*measured, strict=True))
        against = statistics.median(mine[1] / off[1] - 1 for mine, off in zip(measured, first, strict=True))
        print(
            f"{mode:24} {rate:9,.0f} messages/s  {each:6.2f} us/message ({against:+6.1%})  {scrape:5.1f} ms/scrape"
        )


if __name__ == "__main__":
    report(by_turns(MODES, int(sys.argv[1]) if len(sys.argv) > 1 else 40))
