"""List the processes that use a store, and ask them through it for what only they know, as their connections.

A question is published on one channel, and each addressed process answers on a channel of that question. No key is
written, and late answers are dropped.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError

from services.store.catalogue.registry import Registry
from services.store.processes.presence import Process, running
from services.store.processes.rpc_protocol import Answer, Question
from services.store.redis.connect import Connector
from services.store.redis.link import explain
from services.store.redis.subscription import subscribed

WAIT_S = 1.0
MOST_WAIT_S = 60.0
MOST_ARGUMENTS = 16 << 10  # octets of JSON
NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers in the order of arrival, and the processes that did not answer in time."""

    answers: list[Answer] = field(default_factory=list)
    silent: list[Process] = field(default_factory=list)


class ProcessDirectory:
    """The processes that use one store. The caller need not be one of them."""

    def __init__(self, connector: Connector, registry: Registry) -> None:
        self._connector = connector
        self._registry = registry

    async def running(self) -> list[Process]:
        """Return the running processes by edge and name. Raises StoreUnavailable."""
        return await running(self._registry)

    async def inquire(
        self,
        topic: str,
        args: Mapping[str, Any] = NOTHING,
        wait_s: float = WAIT_S,
        *,
        edge: str = "",
        process: str = "",
    ) -> Answers:
        """Ask all processes that know the topic, or those of one edge, or one by name; wait until all have answered.

        An argument `limit` bounds the items per answer. Raises StoreUnavailable; ValueError for arguments that are too
        large, or a wait of more than MOST_WAIT_S.
        """
        if len(json.dumps(dict(args))) > MOST_ARGUMENTS or not 0 < wait_s <= MOST_WAIT_S:
            raise ValueError(f"arguments have at most {MOST_ARGUMENTS} octets, and a wait {MOST_WAIT_S:g} s")
        keys, link, identifier = self._registry.keys, self._registry.link, secrets.token_hex(12)
        question = Question(identifier, 0, topic, dict(args), edge, process)
        expected = {one.name: one for one in await self.running() if topic in one.topics}
        expected = {name: one for name, one in expected.items() if question.is_for(one.edge, name)}
        if not expected:
            return Answers()
        try:
            async with subscribed(self._connector, keys.epoch, keys.answers(identifier)) as connection:
                until = await link.now_ms() + round(wait_s * 1000)
                await link.call("PUBLISH", keys.questions, replace(question, until=until).encode())
                answers = await _collect(connection, expected, wait_s)
        except (RedisError, OSError, TimeoutError) as error:
            raise explain(error) from error
        silent = [one for name, one in expected.items() if name not in answers]
        return Answers(list(answers.values()), silent)


async def _collect(
    connection: AbstractConnection, expected: Mapping[str, Process], wait_s: float
) -> dict[str, Answer]:
    """Collect the first answer of each process, also of those that have just started."""
    loop = asyncio.get_running_loop()
    end, answers = loop.time() + wait_s, dict[str, Answer]()
    while not expected.keys() <= answers.keys() and (rest := end - loop.time()) > 0:
        message = await connection.read_response(disable_decoding=True, timeout=rest)
        if message is not None and (answer := Answer.parse(message[2])) is not None:
            answers.setdefault(answer.process, answer)
    return answers
