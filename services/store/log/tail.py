"""Follow the log on its own connection: read each entry as soon as it is durable."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError

from services.store.log.log import Entry, Place, parse_entries, parse_place, read_command
from services.store.model.errors import DatasetLost, NotInitialised
from services.store.model.keys import DomainKeys
from services.store.redis.connect import Connector, ask, drop
from services.store.redis.link import explain
from services.store.redis.replication import Replication

log = logging.getLogger(__name__)

BLOCK_MS = 1000  # the dataset is checked after each such wait
REPLY_TIMEOUT_S = 6.0
DISCONNECTED = (RedisError, OSError, TimeoutError, EOFError)


class Tail:
    """A reader that follows the log. `place` is after the last entry read; None before the first `next`."""

    def __init__(self, connector: Connector, keys: DomainKeys, replicas: int) -> None:
        self.place: Place | None = None
        self._connector = connector
        self._keys = keys
        self._replicas = replicas
        self._replication = Replication(connector, keys.epoch)
        self._connection: AbstractConnection | None = None
        self._is_behind = False  # the era of `place` may have more entries

    async def next(self) -> list[Entry]:
        """Return the entries after `place`, bounded as in `Log.read`; [] if none came for a second.

        The first call finds the end of the log and returns []. Entries are returned when they are replicated as
        required. Raises StoreUnavailable; the next call goes on at the same place.
        """
        try:
            is_first = self.place is None
            connection = await self._connected()
            if is_first:
                return []
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
        """Close the connection; `next` opens another one."""
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
        """Check that the server still has the dataset, and find the end of the log.

        A server that came back empty would never send an entry.
        """
        if await ask(connection, "EXISTS", self._keys.epoch) == 0:
            raise NotInitialised if self.place is None else DatasetLost
        era, serial = await ask(connection, "HMGET", self._keys.log[1], "era", "serial")
        end = parse_place(b"%b-%b" % (era or b"0", serial or b"0"))
        if self.place is not None and self.place > end:
            # new entries would have places before the one that was read
            log.error(
                "the store lost the end of the log; reading goes on there", extra={"action": "log_went_back"}
            )
            self.place = end
        if self.place is None:
            self.place = end

    async def _read(self, connection: AbstractConnection) -> list[Entry]:
        """Read the rest of the era, which bounds the reply's size, or wait for one entry."""
        assert self.place is not None
        stream = self._keys.log[0]
        if self._is_behind:
            entries = parse_entries(await ask(connection, *read_command(stream, self.place)))
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
        """Wait for replicas. WAIT covers only writes of this connection, so make one after the entries read."""
        await ask(connection, "HINCRBY", self._keys.log[1], "confirmed", 1)
        async with asyncio.timeout(REPLY_TIMEOUT_S):
            while not await self._replication.has(connection, self._replicas, REPLY_TIMEOUT_S):
                continue
