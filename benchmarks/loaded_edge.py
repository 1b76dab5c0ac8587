"""A TMQ edge on a store of its own, loaded over QUEUES queues, to measure the cost of an additional feature."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.request import urlopen

from protos import tmq
from services.store import QueueSpec, Store, StoreError
from services.store.redis.embedded import EmbeddedSettings, EmbeddedStore

T = TypeVar("T")
QUEUES = 200
RUN = 50  # requests that are sent together
BODY = b"x" * 100
ENQ_REPLY = tmq.reply_bytes(tmq.Dialect.DOCUMENT, tmq.Operation.ENQ)


class Edge:
    """An edge and its store, in a folder of their own; the settings are KEY=VALUE."""

    def __init__(self, folder: Path, settings: tuple[str, ...]) -> None:
        folder.mkdir()
        self._store = EmbeddedStore(EmbeddedSettings(folder / "store", "", 0, 1 << 30))
        self._folder, self._settings = folder, settings
        self._lines: list[tuple[socket.socket, bytes]] = []

    @property
    def store(self) -> str:
        return self._store.url

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
                await store.catalogue.declare(f"q{number}", QueueSpec(), "benchmark")
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
                for line, _ in self._lines:
                    line.close()
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

    def load(self, seconds: float) -> tuple[float, float]:
        """Load the edge; return the messages a second, and the microseconds of processor time for each."""
        began, used, number = time.monotonic(), self._used_s(), 0
        while time.monotonic() - began < seconds:
            number += self.once()
        return number / (time.monotonic() - began), (self._used_s() - used) / number * 1e6

    def once(self) -> int:
        """Put a run of messages into each queue and take them out again; return their number."""
        return sum(self._batch(self._lines[first : first + 20]) for first in range(0, QUEUES, 20))

    def scrape(self) -> float:
        """Scrape the metrics and return the seconds of processor time that this took."""
        used = self._used_s()
        with urlopen(self._metrics, timeout=10) as answer:
            answer.read()
        return self._used_s() - used

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
        """Return the processor time of all threads of the edge, in seconds."""
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
