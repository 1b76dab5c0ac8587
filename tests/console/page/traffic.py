"""Generate traffic during tests of the page: clients of TMQ and of the text service."""

from __future__ import annotations

import asyncio
import contextlib
from itertools import count
from types import TracebackType
from typing import Self

from protos.tmq import Dialect
from tests.pubsub.client import Client as TextClient
from tests.tmq.client import Client as TmqClient

Place = tuple[str, int]
PACE_S = 0.02  # between two rounds: some 50 messages a second of each kind


class Traffic:
    """Clients that run within `async with`."""

    def __init__(self, tmq: Place, text: Place, pace_s: float = PACE_S) -> None:
        self._tmq, self._text, self._pace_s = tmq, text, pace_s
        self._tasks: list[asyncio.Task[None]] = []
        self.rounds = 0

    async def __aenter__(self) -> Self:
        self._client = await TmqClient.connect(self._tmq, Dialect.DOCUMENT)
        self._sender = await TextClient.connect(self._text)
        self._listener = await TextClient.connect(self._text)
        await self._listener.subscribe(b"1", b"plant.boiler*")
        self._tasks = [
            asyncio.create_task(each) for each in (self._put_and_take(), self._send(), self._listen())
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._client.close()
        for client in (self._sender, self._listener):
            client.writer.close()
            with contextlib.suppress(ConnectionError):
                await client.writer.wait_closed()

    async def _put_and_take(self) -> None:
        """Consume `orders` as fast as it fills; let `orders/eu` fill slowly."""
        orders, europe = await self._client.open(b"orders"), await self._client.open(b"orders/eu")
        assert orders is not None
        assert europe is not None
        for number in count():
            body = b'{"order": %d, "total": %d.50}' % (number, number % 90)
            await self._client.put(orders, body, body)
            await self._client.dnq(orders)
            if number % 2:
                await self._client.dnq(orders)
            if number % 20 == 0:
                await self._client.put(europe, body)
            self.rounds = number
            await asyncio.sleep(self._pace_s)

    async def _send(self) -> None:
        for number in count():
            await self._sender.publish(b"plant.boiler.temperature", b"%d.5" % (number % 100))
            await asyncio.sleep(self._pace_s * 4)

    async def _listen(self) -> None:
        while await self._listener.line():
            pass
