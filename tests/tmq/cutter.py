"""Provide a proxy between edge and store that can cut the connection before a request or after its reply."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import Enum
from typing import Self


class Cut(Enum):
    REQUEST = "the request never reaches the store"
    REPLY = "the store does it, the answer is lost"
    SILENCE = "the store does it, and then nothing comes from there any more: not even an end"


@dataclass
class Plan:
    cut: Cut
    marker: bytes
    times: int


class Cutter:
    """Forward bytes both ways until a request contains the marker; then close or silence that connection."""

    def __init__(self, store_port: int) -> None:
        self._store_port = store_port
        self._plan: Plan | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._silenced: set[asyncio.StreamWriter] = set()
        self.cuts = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut_at(self, cut: Cut, marker: bytes, times: int = 1) -> None:
        """Cut the next `times` requests that contain the marker."""
        self._plan = Plan(cut, marker, times)

    def _cuts(self, request: bytes) -> Cut | None:
        plan = self._plan
        if plan is None or plan.marker not in request:
            return None
        plan.times -= 1
        self.cuts += 1
        if not plan.times:
            self._plan = None
        return plan.cut

    async def _accept(self, edge: asyncio.StreamReader, to_edge: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        store, to_store = await asyncio.open_connection("127.0.0.1", self._store_port)
        back = asyncio.create_task(self._carry(store, to_edge))
        try:
            while request := await edge.read(1 << 20):
                cut = self._cuts(request)
                if cut is Cut.REQUEST:
                    break
                if cut is Cut.REPLY:
                    back.cancel()
                    await asyncio.gather(back, return_exceptions=True)
                    to_store.write(request)
                    await store.read(1)  # the store has executed the request
                    break
                if cut is Cut.SILENCE:
                    self._silenced.add(to_edge)
                to_store.write(request)
        except ConnectionError:
            pass
        finally:
            back.cancel()
            to_edge.close()
            to_store.close()

    async def _carry(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(1 << 20):
                if target not in self._silenced:
                    target.write(data)
        except ConnectionError:
            pass
        finally:
            target.close()
