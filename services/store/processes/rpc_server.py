"""Answer questions to this process that arrive through the store (process_directory.py)."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError

from services.store.catalogue.registry import Registry
from services.store.model.errors import StoreError
from services.store.processes.presence import Presence
from services.store.processes.rpc_protocol import MOST_ITEMS, Question, Respondent, Topic, encode_answer
from services.store.redis.connect import Connector
from services.store.redis.process_names import process_name
from services.store.redis.subscription import subscribed

log = logging.getLogger(__name__)

QUIET_S = 10.0  # after this long without a message the store is probed
RETRY_S = 1.0
STEP = 25  # items encoded in one turn of the event loop, about a quarter of a ms
FAILED = "internal error; see the log of that process"


class Reception:
    """A server that answers questions one after the other, from `start` until `close`."""

    def __init__(self, connector: Connector, registry: Registry, edge: str, respondent: Respondent) -> None:
        self._connector = connector
        self._registry = registry
        self._name = process_name(edge)
        self._edge = edge
        self._respondent = respondent
        self.presence = Presence(registry, self._name, edge, respondent)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Enter the process in the directory and answer questions from now on."""
        self.presence.start()
        self._task = asyncio.create_task(self._listen_for_ever(), name="store reception")

    async def close(self) -> None:
        """Answer no more questions. The process's entry stays until `presence.leave`."""
        await self.presence.stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _listen_for_ever(self) -> None:
        keys = self._registry.keys
        while True:
            try:
                async with subscribed(self._connector, keys.epoch, keys.questions) as connection:
                    self.presence.announce_topics()
                    await self._listen(connection)
            except (RedisError, OSError, TimeoutError, StoreError) as error:
                log.debug("cannot receive questions: %s", error, extra={"action": "questions_lost"})
            except Exception:
                log.exception("internal error: questions are lost", extra={"action": "questions_lost"})
            await asyncio.sleep(RETRY_S)

    async def _listen(self, connection: AbstractConnection) -> None:
        """Answer questions until the connection is lost. Raises TimeoutError if the store stops answering."""
        is_probed = False
        while True:
            message = await connection.read_response(disable_decoding=True, timeout=QUIET_S)
            if message is None and is_probed:
                raise TimeoutError("the store does not answer")
            if message is None:
                await connection.send_command("PING")
            elif message[0] == b"message":
                await self._received(message[2])
            is_probed = message is None

    async def _received(self, text: bytes) -> None:
        question = Question.parse(text)
        if question is None or not question.is_for(self._edge, self._name):
            return
        topic = self._respondent.topics.get(question.topic)
        if topic is not None:
            await self._answer(question, topic)

    async def _answer(self, question: Question, topic: Topic) -> None:
        """Publish the answer, unless the asker has stopped waiting: a backlog of old questions is skipped."""
        link, channel = self._registry.link, self._registry.keys.answers(question.id)
        try:
            if await link.now_ms() < question.until:
                await link.call("PUBLISH", channel, await self._encode_answer(question, topic))
        except StoreError as error:
            log.debug("an answer could not be sent: %s", error, extra={"action": "answer_lost"})

    async def _encode_answer(self, question: Question, topic: Topic) -> bytes:
        items, more, problem = list[str](), False, ""
        try:
            items, more = await encode_items(topic, question.args)
        except ValueError as error:
            problem = str(error)
        except Exception:
            fields = {"action": "question_failed", "topic": question.topic}
            log.exception("internal error: a question could not be answered", extra=fields)
            problem = FAILED
        return encode_answer(self._name, self._edge, items, more, problem)


async def encode_items(topic: Topic, args: Mapping[str, Any]) -> tuple[list[str], bool]:
    """Return the items as JSON, bounded by the argument `limit` and MOST_ITEMS, and whether there are more.

    Raises ValueError for invalid arguments.
    """
    limit, items, octets = args.get("limit"), list[str](), 0
    if limit is not None and (type(limit) is not int or limit < 0):
        raise ValueError("limit must be an integer of 0 or more")
    for item in topic(args):
        text = json.dumps(item, separators=(",", ":"))
        octets += len(text) + 1
        if len(items) == limit or octets > MOST_ITEMS:
            return items, True
        items.append(text)
        if not len(items) % STEP:
            await asyncio.sleep(0)
    return items, False
