"""One connection for questions that may simply be asked again: registry, statistics, heartbeats, upkeep."""

from __future__ import annotations

import asyncio
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

PATIENCE_S = 2.0  # how long others' questions may keep one waiting while none of them is answered
RETRY_PAUSE_S = 0.05
UNWRITABLE = (
    "MISCONF"  # how a server begins that cannot write to its disk; the rest are words without addresses
)
NO_DISK = "the store cannot write to its disk"
READS = (
    "stats",
    "stats_of",
    "peek",
    "ready",
    "dead",
    "available",
    "log_bindings",
)  # functions that change nothing


def explain(error: BaseException) -> StoreError:
    """What a failed question means to whoever asked."""
    text = str(error)
    if isinstance(error, StoreError):
        return error
    if isinstance(error, ResponseError):
        if text.startswith("EPOCH"):
            return NotInitialised() if text == "EPOCH none" else DatasetLost()
        if "Function not found" in text:
            return NotInitialised("the store has no functions of this version: run `penstock store init`")
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
    """The same; of a server on this machine that is away also what is wrong with its disk."""
    explained = explain(error)
    if connector.disk is None or type(explained) is not StoreUnavailable or isinstance(error, ResponseError):
        return explained
    trouble = await connector.disk.trouble()
    if trouble is None:
        return explained
    return StoreUnavailable(f"{explained}; {trouble.text}", disk="" if trouble.is_writable else NO_DISK)


class Link:
    """Calls one at a time on a connection that is made when needed and made anew after any fault."""

    def __init__(self, connector: Connector, key: str) -> None:
        self.connector = connector
        self._key = key
        self._connection: AbstractConnection | None = None
        self._lock = asyncio.Lock()
        self._sent = False  # the command at hand may have reached the store
        self._heard = 0.0  # when it last answered

    async def call(self, *command: Any, attempts: int = 2) -> Any:
        """The reply to one command. Raises StoreError; a command that may not be repeated says attempts=1."""
        return await self._call(command, attempts, changes=False)

    async def _call(self, command: tuple[Any, ...], attempts: int, *, changes: bool) -> Any:
        await self._turn()
        try:
            return await self._attempt(command, attempts, changes)
        finally:
            self._lock.release()

    async def _turn(self) -> None:
        """Takes the lock. Raises StoreUnavailable: many may wait, but not one after the other for a silent store."""
        while True:
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await self._lock.acquire()
            except TimeoutError:
                if time.monotonic() - self._heard > PATIENCE_S:
                    raise StoreUnavailable(
                        "the store does not answer, and others wait for it already"
                    ) from None
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
                    await self._drop()  # whoever asks next dials the one that is primary now
                if last or not is_elsewhere(error):
                    raise await self._failure(error, unanswered and changes) from error
            except (TimeoutError, RedisError, OSError) as error:
                unanswered = unanswered or self._sent
                await self._drop()
                if last or isinstance(error, TimeoutError):  # once is long enough
                    raise await self._failure(error, unanswered and changes) from error
                await asyncio.sleep(RETRY_PAUSE_S)
        raise AssertionError("unreachable")

    async def _failure(self, error: Exception, in_doubt: bool) -> StoreError:
        """A change that was sent and not answered may have been made."""
        return OutcomeUnknown() if in_doubt else await explain_here(error, self.connector)

    async def function(
        self, name: str, keys: list[str] | tuple[str, ...], *args: Any, attempts: int = 2
    ) -> Any:
        """The reply of one of our functions. Raises OutcomeUnknown if a change was sent and never answered."""
        command = ("FCALL", f"ps1_{name}", len(keys), *keys, *args)
        return await self._call(command, attempts, changes=name not in READS)

    async def now_ms(self) -> int:
        """The store's clock, ms since 1970."""
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
            await self._drop()  # its reply would be taken for the next one's
            raise

    async def _drop(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await connection.disconnect(nowait=True)

    async def close(self) -> None:
        async with self._lock:
            await self._drop()


def is_elsewhere(error: ResponseError) -> bool:
    """The node is not (any more) the one to ask, or not yet."""
    text = f"{type(error).__name__} {error}"
    return any(
        word in text
        for word in (
            "EPOCH",
            "MOVED",
            "Moved",
            "Ask",
            "TryAgain",
            "ClusterDown",
            "READONLY",
            "ReadOnly",
            "LOADING",
            "Loading",
            "MASTERDOWN",
            "MasterDown",
        )
    )
