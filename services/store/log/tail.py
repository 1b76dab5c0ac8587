"""Following the log: each entry as soon as it is durable, on a connection of its own."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError

from services.store.log.log import Entry, Place, parse_entries, parse_place, reading_on
from services.store.model.errors import DatasetLost, NotInitialised, StoreUnavailable
from services.store.model.keys import DomainKeys
from services.store.redis.connect import Connector, ask, drop
from services.store.redis.link import explain
from services.store.redis.replication import Replication

log = logging.getLogger(__name__)

BLOCK_MS = 1000  # then it is asked whether the data is still the same
REPLY_TIMEOUT_S = 6.0
DISCONNECTED = (RedisError, OSError, TimeoutError, EOFError)


class Tail:
    """`place` is behind the last entry that was handed out; None before the first `next`: it begins at the end."""

    def __init__(self, connector: Connector, keys: DomainKeys, replicas: int) -> None:
        self.place: Place | None = None
        self._connector = connector
        self._keys = keys
        self._replicas = replicas
        self._replication = Replication(connector, keys.epoch)
        self._connection: AbstractConnection | None = None
        self._is_behind = False  # there may be more of the era that `place` is in

    async def next(self) -> list[Entry]:
        """The entries behind `place`; [] if none came for a second, and the first time. As many as `Log.read`.

        What a replicated log has not replicated yet is not there yet. Raises StoreUnavailable; then it may be asked
        again, and goes on where it was.
        """
        try:
            is_first = self.place is None
            connection = await self._connected()
            if is_first:
                return []  # at once: where it begins is known now
            async with asyncio.timeout(REPLY_TIMEOUT_S):
                entries = await self._read(connection)
            if entries and self._replicas:
                await self._confirm(connection)
        except DISCONNECTED as error:
            await self.close()
            raise explain(error) from error
        except BaseException:
            await self.close()
            raise
        if entries:
            self.place = entries[-1].place
        return entries

    async def close(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await drop(connection)

    async def _connected(self) -> AbstractConnection:
        if self._connection is None:
            self._connection = await self._connector.connect(self._keys.epoch)
            async with asyncio.timeout(REPLY_TIMEOUT_S):
                await self._check(self._connection)
        return self._connection

    async def _check(self, connection: AbstractConnection) -> None:
        """An empty server that came back has no log, and would tell nothing for ever."""
        if await ask(connection, "EXISTS", self._keys.epoch) == 0:
            raise NotInitialised if self.place is None else DatasetLost
        era, serial = await ask(connection, "HMGET", self._keys.log[1], "era", "serial")
        end = parse_place(b"%b-%b" % (era or b"0", serial or b"0"))
        if self.place is not None and self.place > end:
            # the data went back in time, and so did the clock: what comes now would seem to be old
            log.error("the log ends before what was read of it", extra={"action": "log_went_back"})
            self.place = end
        if self.place is None:
            self.place = end

    async def _read(self, connection: AbstractConnection) -> list[Entry]:
        """Waits for one entry, as nobody knows how long those are that come; what is there by then is an era's rest."""
        assert self.place is not None
        stream = self._keys.log[0]
        if self._is_behind:
            entries = parse_entries(await ask(connection, *reading_on(stream, self.place)))
            self._is_behind = bool(entries)
            if entries:
                return entries
        reply: Any = await ask(
            connection, "XREAD", "COUNT", 1, "BLOCK", BLOCK_MS, "STREAMS", stream, str(self.place)
        )
        if not reply:
            await self._check(connection)
            return []
        self._is_behind = True
        return parse_entries(reply[0][1])

    async def _confirm(self, connection: AbstractConnection) -> None:
        """WAIT speaks of this connection's own writes: so it makes one behind what it has read."""
        await ask(connection, "HINCRBY", self._keys.log[1], "confirmed", 1)
        async with asyncio.timeout(REPLY_TIMEOUT_S):
            while not await self._replication.has(connection, self._replicas, REPLY_TIMEOUT_S):
                continue


__all__ = ["StoreUnavailable", "Tail"]
