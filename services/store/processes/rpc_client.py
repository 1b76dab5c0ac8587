"""Ask running processes through the store for what only they know: their connections and subscriptions.

A question is published on one channel, and each addressed process answers on a channel of that question. No key is
written, and late answers are dropped.
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
MOST_ITEMS = 1 << 20  # octets of JSON in one answer; `more` says that items were left out
NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Answer:
    """One process's answer."""

    process: str
    edge: str
    items: list[dict[str, Any]]
    more: bool = False  # there are more items than the limit or MOST_ITEMS allows
    problem: str = ""  # why the question was not answered; there are then no items


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers in the order of arrival, and the processes that did not answer in time."""

    answers: list[Answer] = field(default_factory=list)
    silent: list[Process] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A question and its addressees."""

    topic: str
    args: dict[str, Any]
    edge: str = ""  # '': all
    process: str = ""

    def is_for(self, edge: str, process: str) -> bool:
        """Return whether the process of this name and edge is addressed."""
        return self.edge in ("", edge) and self.process in ("", process)


@dataclass(frozen=True, slots=True)
class Question:
    """A published question. `until`: when the asker stops waiting, ms by the store's clock."""

    id: str
    wanted: Wanted
    until: int

    def encode(self) -> bytes:
        """Encode the question for the channel, as JSON."""
        return json.dumps({"id": self.id, "until": self.until, **asdict(self.wanted)}).encode()

    @classmethod
    def parse(cls, text: bytes) -> Question | None:
        """Return the question, None if it is of another version."""
        try:
            said = json.loads(text)
            wanted = Wanted(str(said["topic"]), dict(said["args"]), str(said["edge"]), str(said["process"]))
            return cls(str(said["id"]), wanted, int(said["until"]))
        except (ValueError, TypeError, KeyError, RecursionError):
            return None


async def inquire(connector: Connector, registry: Registry, wanted: Wanted, wait_s: float) -> Answers:
    """Ask and wait until all addressed processes have answered, for `wait_s` at most.

    Raises StoreUnavailable, ValueError.
    """
    if len(json.dumps(wanted.args)) > MOST_ARGUMENTS or not 0 < wait_s <= MOST_WAIT_S:
        raise ValueError(f"arguments have at most {MOST_ARGUMENTS} octets, and a wait {MOST_WAIT_S:g} s")
    processes = [one for one in await running(registry) if wanted.topic in one.topics]
    expected = {one.name: one for one in processes if wanted.is_for(one.edge, one.name)}
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
    """Collect the first answer of each process, also of those that have just started."""
    loop = asyncio.get_running_loop()
    end, answers = loop.time() + wait_s, dict[str, Answer]()
    while not expected.keys() <= answers.keys() and (rest := end - loop.time()) > 0:
        message = await connection.read_response(disable_decoding=True, timeout=rest)
        if message is not None and (answer := parse_answer(message[2])) is not None:
            answers.setdefault(answer.process, answer)
    return answers


def encode_answer(process: str, edge: str, items: list[str], more: bool, problem: str) -> bytes:
    """Encode an answer as JSON. items: each as JSON."""
    head = json.dumps({"process": process, "edge": edge, "more": more, "problem": problem})
    return f'{head[:-1]}, "items": [{",".join(items)}]}}'.encode()


def parse_answer(text: bytes) -> Answer | None:
    """Return the answer, None if it is of another version."""
    try:
        said = json.loads(text)
        items, more = [dict(item) for item in said["items"]], bool(said["more"])
        return Answer(str(said["process"]), str(said["edge"]), items, more, str(said["problem"]))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
