"""Running processes are asked through the store what only they know: their connections, their subscriptions.

A question is told on one channel, and each process that it is for answers on a channel of its own, which only the asker
hears. Nothing is written: no key is left behind, no disk waits, and an answer that comes too late is nobody's.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError

from services.store.catalogue.registry import Registry
from services.store.processes.presence import Process, running
from services.store.redis.connect import Connector
from services.store.redis.link import explain
from services.store.redis.subscription import subscribed

WAIT_S = 1.0
MOST_WAIT_S = 60.0
MOST_ARGUMENTS = 16 << 10  # octets of JSON
MOST_ITEMS = 1 << 20  # octets of JSON that one process answers; `more` says that there would be more
NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Answer:
    """What one process said."""

    process: str
    edge: str
    items: list[dict[str, Any]]
    more: bool = False  # it has more of them than it was asked for, or than there is room for
    problem: str = ""  # why it did not do what it was asked: then there are no items


@dataclass(frozen=True, slots=True)
class Answers:
    """In the order in which they came; and who has not answered in time: dead, too busy, or far behind."""

    answers: list[Answer] = field(default_factory=list)
    silent: list[Process] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked, and of whom."""

    topic: str
    args: dict[str, Any]
    edge: str = ""  # '': all
    process: str = ""

    def is_for(self, edge: str, process: str) -> bool:
        return self.edge in ("", edge) and self.process in ("", process)


@dataclass(frozen=True, slots=True)
class Question:
    """As it is told. `until`: from then on nobody waits any longer, ms by the store's clock."""

    id: str
    wanted: Wanted
    until: int

    def encode(self) -> bytes:
        return json.dumps({"id": self.id, "until": self.until, **asdict(self.wanted)}).encode()

    @classmethod
    def parse(cls, text: bytes) -> Question | None:
        """None: it is none of this version."""
        try:
            told = json.loads(text)
            wanted = Wanted(str(told["topic"]), dict(told["args"]), str(told["edge"]), str(told["process"]))
            return cls(str(told["id"]), wanted, int(told["until"]))
        except (ValueError, TypeError, KeyError, RecursionError):
            return None


async def inquire(connector: Connector, registry: Registry, wanted: Wanted, wait_s: float) -> Answers:
    """Returns when all that run have answered, or after `wait_s`. Raises StoreUnavailable, ValueError."""
    if len(json.dumps(wanted.args)) > MOST_ARGUMENTS or not 0 < wait_s <= MOST_WAIT_S:
        raise ValueError(f"arguments have at most {MOST_ARGUMENTS} octets, and a wait {MOST_WAIT_S:g} s")
    those = [one for one in await running(registry) if wanted.topic in one.topics]
    expected = {one.name: one for one in those if wanted.is_for(one.edge, one.name)}
    if not expected:
        return Answers()
    try:
        answers = await _ask(connector, registry, wanted, wait_s, expected)
    except (RedisError, OSError, TimeoutError) as error:
        raise explain(error) from error
    silent = [process for name, process in expected.items() if name not in answers]
    return Answers(list(answers.values()), silent)


async def _ask(
    connector: Connector, registry: Registry, wanted: Wanted, wait_s: float, expected: Mapping[str, Process]
) -> dict[str, Answer]:
    keys, link, identifier = registry.keys, registry.link, secrets.token_hex(12)
    async with subscribed(connector, keys.epoch, keys.answers(identifier)) as connection:
        question = Question(identifier, wanted, await link.now_ms() + round(wait_s * 1000))
        await link.call("PUBLISH", keys.questions, question.encode())
        return await _collect(connection, expected, wait_s)


async def _collect(
    connection: AbstractConnection, expected: Mapping[str, Process], wait_s: float
) -> dict[str, Answer]:
    """The first answer of each; also of one that has only just begun to run."""
    loop = asyncio.get_running_loop()
    end, answers = loop.time() + wait_s, dict[str, Answer]()
    while not expected.keys() <= answers.keys() and (rest := end - loop.time()) > 0:
        message = await connection.read_response(disable_decoding=True, timeout=rest)
        if message is not None and (answer := parse_answer(message[2])) is not None:
            answers.setdefault(answer.process, answer)
    return answers


def encode_answer(process: str, edge: str, items: list[str], more: bool, problem: str) -> bytes:
    """items: each as JSON."""
    told = json.dumps({"process": process, "edge": edge, "more": more, "problem": problem})
    return f'{told[:-1]}, "items": [{",".join(items)}]}}'.encode()


def parse_answer(text: bytes) -> Answer | None:
    try:
        told = json.loads(text)
        items = [dict(item) for item in told["items"]]
        return Answer(
            str(told["process"]), str(told["edge"]), items, bool(told["more"]), str(told["problem"])
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
