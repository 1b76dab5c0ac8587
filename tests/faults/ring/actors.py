"""Clients that use the nodes' client ports and record the answers."""

from __future__ import annotations

import asyncio
import random
import time

from tests.faults.ring.history import Answer, History, Pull, Push
from tests.faults.ring.nodes import RingNode
from tests.faults.ring.plan import Way
from tests.ring.clients.client import OK, Client, pull, push

SIZES = (0,) * 90 + (600,) * 6 + (5_000,) * 3 + (15_000,)  # octets beyond the head; all sizes fit the ring
RUNS = (1, 1, 1, 3, 20)  # numbers of pushes pipelined
PAUSE_S = 0.2  # longest pause between two runs
PACE_S = 0.1  # delay after a failed connection or an ERROR
PATIENCE_S = 8.0
# prefixes of errors from around the ring that leave the outcome open (ring.md 5.8)
NOT_DECIDED = ("timeout", "unknown:", "no node serves this queue")


class Actor:
    """An actor on one way, with one client connection after another."""

    def __init__(self, seed: int, way: Way, node: RingNode, history: History) -> None:
        self.way = way
        self._queue = way.queue.encode()
        self._place = node.place
        self._history = history
        self._rng = random.Random(f"{seed} {way} {type(self).__name__}")
        self._client: Client | None = None

    async def play(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            is_well = await self.turn()
            await asyncio.sleep(self._rng.uniform(0, PAUSE_S) if is_well else PACE_S)
        self.close()

    async def turn(self) -> bool:
        """Send one run of requests; return False if any of them failed."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                if self._client is None:
                    self._client = await Client.connect(self._place)
                return await self._ask(self._client)
        except (OSError, EOFError, TimeoutError):
            self.close()
            return False

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    async def _ask(self, client: Client) -> bool:
        raise NotImplementedError


class Pusher(Actor):
    """An actor that pushes. It does not retry unanswered pushes, whose outcome is unknown."""

    async def _ask(self, client: Client) -> bool:
        asked = [self._next() for _ in range(self._rng.choice(RUNS))]
        await client.send(push(self._queue, *(each.body for each in asked)))
        for each in asked:
            answer = await client.reply(self._queue)
            each.ended = time.time()
            if answer.operation is OK:
                each.answer = Answer.OK
                continue
            each.words = answer.message.decode()
            each.answer = (
                Answer.OPEN if self.way.goes_round and each.words.startswith(NOT_DECIDED) else Answer.NO
            )
        return all(each.answer is Answer.OK for each in asked)

    def _next(self) -> Push:
        way = self.way
        body = self._history.body(way.node, self._rng.choice(SIZES))
        made = Push(body, way.queue, way.node, way.goes_round, time.time())
        self._history.pushes.append(made)
        return made


class Puller(Actor):
    """An actor that pulls one message at a time; the next pull settles it."""

    async def _ask(self, client: Client) -> bool:
        await client.send(pull(self._queue))
        answer = await client.reply(self._queue)
        if answer.operation is not OK:
            return False
        self._history.pulls.append(Pull(answer.message, self.way.queue, self.way.node, time.time()))
        return True
