"""A connection for commands that can be repeated: registry, statistics, heartbeats, upkeep."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError, ResponseError

from services.store.model.errors import (
    REFUSALS,
    DatasetLost,
    NotInitialised,
    OutcomeUnknown,
    StoreError,
    StoreFault,
    StoreUnavailable,
)
from services.store.redis.connect import OPEN_TIMEOUT_S, Connector

PATIENCE_S = 2.0  # for the turn behind other commands while none of them is answered
RETRY_PAUSE_S = 0.05
UNWRITABLE = "MISCONF"  # prefix of the error of a server that cannot write to its disk
NO_DISK = "the store cannot write to its disk"
READS = frozenset(("stats", "stats_of", "peek", "ready", "dead", "available", "log_bindings"))
# words in errors of a node that is not, no longer or not yet the key's primary
ELSEWHERE = re.compile(
    "EPOCH|MOVED|Moved|Ask|TryAgain|ClusterDown|READONLY|ReadOnly|LOADING|Loading|MASTERDOWN|MasterDown"
)


def explain(error: BaseException) -> StoreError:
    """Return the StoreError that tells the caller what an exception means."""
    text = str(error)
    if isinstance(error, StoreError):
        return error
    if isinstance(error, ResponseError):
        if text.startswith("EPOCH"):
            return NotInitialised() if text == "EPOCH none" else DatasetLost()
        if "Function not found" in text:
            return NotInitialised("the store lacks the functions of this version: run `penstock store init`")
        if (refused := REFUSALS.get(text.partition(" ")[0])) is not None:
            return refused()
        if text.startswith("SESSION"):
            return StoreUnavailable(text)
        if "user_function" in text or "user_script" in text:
            return StoreFault(text)
        if text.startswith(UNWRITABLE):
            return StoreUnavailable(f"{NO_DISK}: {text}", disk=f"{NO_DISK}: {text}")
    kind = type(error).__name__
    text = text or ("it does not answer" if "Timeout" in kind else kind)
    return StoreUnavailable(f"the store cannot be used now: {text}")


async def explain_here(error: BaseException, connector: Connector) -> StoreError:
    """Return what `explain` does, with the disk's problem for an unavailable server on this machine."""
    explained = explain(error)
    if connector.disk is None or type(explained) is not StoreUnavailable or isinstance(error, ResponseError):
        return explained
    trouble = await connector.disk.trouble()
    if trouble is None:
        return explained
    return StoreUnavailable(f"{explained}; {trouble.text}", disk="" if trouble.is_writable else NO_DISK)


class Link:
    """A connection for one command at a time, opened when needed and again after any fault."""

    def __init__(self, connector: Connector, key: str) -> None:
        self.connector = connector
        self._key = key
        self._connection: AbstractConnection | None = None
        self._lock = asyncio.Lock()
        self._sent = False  # the current command may have reached the store
        self._heard = 0.0  # when the store last answered

    async def call(self, *command: Any, attempts: int = 2, changes: bool = False) -> Any:
        """Return the reply to a command. Raises StoreError; with `changes` also OutcomeUnknown.

        attempts=1: the command must not be repeated. changes: it changes data.
        """
        await self._turn()
        try:
            return await self._attempt(command, attempts, changes)
        finally:
            self._lock.release()

    async def _turn(self) -> None:
        """Take the lock. Raises StoreUnavailable while the store is silent, so that callers do not queue up."""
        while True:
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await self._lock.acquire()
            except TimeoutError:
                if time.monotonic() - self._heard > PATIENCE_S:
                    raise StoreUnavailable("the store is not responding") from None
            else:
                return

    async def _attempt(self, command: tuple[Any, ...], attempts: int, changes: bool) -> Any:
        unanswered = False
        for attempt in range(attempts):
            last = attempt + 1 == attempts
            self._sent = False
            try:
                return await self._ask(command)
            except ResponseError as error:
                if is_elsewhere(error):
                    await self._drop()  # the next command connects to the current primary
                if last or not is_elsewhere(error):
                    raise await self._failure(error, unanswered and changes) from error
            except (TimeoutError, RedisError, OSError) as error:
                unanswered = unanswered or self._sent
                await self._drop()
                if last or isinstance(error, TimeoutError):
                    raise await self._failure(error, unanswered and changes) from error
                await asyncio.sleep(RETRY_PAUSE_S)
        raise AssertionError("unreachable")

    async def _failure(self, error: Exception, in_doubt: bool) -> StoreError:
        """Return the error to raise. in_doubt: a change was sent and not answered."""
        return OutcomeUnknown() if in_doubt else await explain_here(error, self.connector)

    async def function(
        self, name: str, keys: list[str] | tuple[str, ...], *args: Any, attempts: int = 2
    ) -> Any:
        """Return the reply of a library function. Raises OutcomeUnknown if a change was sent and not answered."""
        command = ("FCALL", f"ps1_{name}", len(keys), *keys, *args)
        return await self.call(*command, attempts=attempts, changes=name not in READS)

    async def now_ms(self) -> int:
        """Return the store's time, ms since 1970."""
        seconds, micros = await self.call("TIME")
        return int(seconds) * 1000 + int(micros) // 1000

    async def _ask(self, command: tuple[Any, ...]) -> Any:
        if self._connection is None:
            async with asyncio.timeout(self.connector.reply_timeout_s):
                within_s = max(OPEN_TIMEOUT_S, self.connector.reply_timeout_s)
                self._connection = await self.connector.connect(self._key, opens_within_s=within_s)
        try:
            self._sent = True
            async with asyncio.timeout(self.connector.reply_timeout_s):
                await self._connection.send_command(*command)
                reply = await self._connection.read_response(disable_decoding=True)
            self._heard = time.monotonic()
            return reply
        except ResponseError:
            self._heard = time.monotonic()
            raise
        except asyncio.CancelledError:
            await self._drop()  # its reply would be taken for the next command's
            raise

    async def _drop(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await connection.disconnect(nowait=True)

    async def close(self) -> None:
        """Close the connection once the current command is done; a later command opens it again."""
        async with self._lock:
            await self._drop()


def is_elsewhere(error: ResponseError) -> bool:
    """Return whether the node is not, no longer or not yet the one to ask."""
    return ELSEWHERE.search(f"{type(error).__name__} {error}") is not None
