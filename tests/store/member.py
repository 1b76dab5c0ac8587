"""Run a process that answers requests, in this loop or as `python -m tests.store.member URL EDGE`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from subprocess import Popen
from typing import Any

from services.store import Store
from services.store.pipeline.domain import Timing
from services.store.processes.presence import Process
from services.store.processes.rpc_protocol import Item, Topic
from tests.store.desk import until

ROOT = Path(__file__).parents[2]
QUIET = Timing(sample_s=3600.0, upkeep_s=3600.0)


class Member:
    """A store's observer. `asked` has the arguments of received requests."""

    def __init__(self, edge: str) -> None:
        self.edge = edge
        self.asked: list[Mapping[str, Any]] = []
        self.topics: dict[str, Topic] = {"numbers": self.numbers}
        self.facts: dict[str, Any] = {}

    def __call__(self, reason: str, number: int) -> None:
        return None

    def about(self) -> dict[str, Any]:
        return self.facts

    def numbers(self, args: Mapping[str, Any]) -> Iterable[Item]:
        """Return `count` items with texts of `octets`; arguments `wrong` and `bug` raise the respective error."""
        self.asked.append(args)
        if args.get("wrong"):
            raise ValueError("that is wrong")
        for number in range(args.get("count", 1)):
            if number == args.get("bug"):
                raise RuntimeError("a fault of ours")
            yield {"number": number, "text": "x" * args.get("octets", 0)}


@contextlib.asynccontextmanager
async def member(url: str, edge: str = "test") -> AsyncIterator[tuple[Member, Store]]:
    """Run a member in this loop, and wait until others know it."""
    observer = Member(edge)
    store = Store(url, edge, timing=QUIET, observe=observer)
    store.start_serving()
    try:
        await until(lambda: is_known(store, edge))
        yield observer, store
    finally:
        await store.close()


async def is_known(store: Store, edge: str) -> bool:
    """Return whether the member is known and can be asked."""
    found = [one for one in await store.processes.running() if (one.edge, one.pid) == (edge, os.getpid())]
    return bool(found and found[0].topics)


class Program:
    """A member in a process that can be stopped and killed."""

    def __init__(self, url: str, edge: str) -> None:
        command = [sys.executable, "-m", "tests.store.member", url, edge]
        self.process = Popen(command, cwd=ROOT)

    async def known(self, store: Store) -> Process:
        """Return the member's directory entry, once it can be asked."""

        async def heard() -> Process | None:
            ours = [
                one for one in await store.processes.running() if one.pid == self.process.pid and one.topics
            ]
            return ours[0] if ours else None

        found = await until(heard)
        assert isinstance(found, Process)
        return found

    def signal(self, signum: signal.Signals) -> None:
        self.process.send_signal(signum)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


async def serve(url: str, edge: str) -> None:
    """Run a member until SIGTERM."""
    store = Store(url, edge, timing=QUIET, observe=Member(edge))
    store.start_serving()
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    await store.close()


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
    os._exit(0)
