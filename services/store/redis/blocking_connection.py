"""A blocking connection to the primary that holds a key, for programs without an event loop."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import hiredis
from redis._parsers import BaseParser
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    ConnectionError,
    InvalidResponse,
    RedisError,
    ResponseError,
)

from services.store.model.errors import StoreUnavailable
from services.store.redis.connect import Connector, drop
from services.store.redis.link import explain, is_elsewhere

RETRY_PAUSE_S = 0.2
CHUNK = 1 << 18  # octets taken from the socket at a time
NO_BOUND = 1 << 62
NOT_YET = object()
DISCONNECTED = (TimeoutError, RedisError, OSError)
REFUSED = (AuthenticationError, AuthorizationError)  # not retried

Command = tuple[Any, ...]


class Broken(ConnectionError):
    """A reply was truncated, or larger than the caller's limit.

    Servers close connections whose replies exceed client-output-buffer-limit.
    """


class Replies:
    """The replies of one connection, undecoded."""

    def __init__(self, connection: AbstractConnection) -> None:
        self.connection = connection
        self.is_amid = False  # part of a reply has arrived
        self.octets = 0  # received
        self._parser = hiredis.Reader(
            protocolError=InvalidResponse, replyError=BaseParser.parse_error, notEnoughData=NOT_YET
        )

    async def next(self, most: int) -> Any:
        """Read the next reply, of at most `most` octets. An error reply is returned. Raises Broken."""
        stream, octets = self.connection._reader, 0  # noqa: SLF001 - redis-py offers no stream
        assert stream is not None
        while (reply := self._parser.gets()) is NOT_YET:
            data = await stream.read(CHUNK)
            if not data:
                raise Broken("the store closed the connection")
            octets += len(data)
            self.octets += len(data)
            self.is_amid = True
            if octets > most:
                raise Broken(f"a reply has more than {most} octets")
            self._parser.feed(data)
        self.is_amid = False
        return reply


class BlockingConnection:
    """A blocking connection that retries for `patience_s`, each time at the key's current primary.

    Lasting refusals (a wrong password, a missing right) are raised at once.
    """

    def __init__(self, url: str, reply_timeout_s: float, patience_s: float) -> None:
        """Connect nothing yet. Raises ValueError for an invalid URL."""
        self._connector = Connector(url, reply_timeout_s)
        self._reply_timeout_s = reply_timeout_s
        self._patience_s = patience_s
        self._runner = asyncio.Runner()
        # Runner.run would install its signal handler at each call
        self._run = self._runner.get_loop().run_until_complete
        self._is_one_server = self._connector.url.mode != "cluster"
        self.octets = 0  # received for the first reply of the last `ask`
        self._replies: Replies | None = None
        self._key = ""
        self._sent: tuple[Command, ...] = ()  # by `send`, their replies not yet read

    def close(self) -> None:
        """Close the connection and the event loop."""
        self._forget()
        self._runner.close()

    def send(self, *commands: Command) -> None:
        """Send commands ahead on the open connection; the same commands in `ask` then only read the replies."""
        try:
            self._run(self._send(commands))
        except DISCONNECTED:
            self._forget()
        else:
            self._sent = commands

    def ask(self, key: str, *commands: Command, most: int = NO_BOUND) -> list[Any]:
        """Return the commands' replies; an error reply to a later command is returned as it is.

        most: maximal octets of a reply. Raises StoreUnavailable after `patience_s`, ResponseError for an error reply to
        the first command, and with `most` Broken for a truncated or larger reply.
        """
        end = time.monotonic() + self._patience_s
        while True:
            try:
                return self._run(self._asked(key, commands, most))
            except (*DISCONNECTED, StoreUnavailable) as error:
                self._forget()
                if isinstance(error, Broken) and most != NO_BOUND:
                    raise
                if isinstance(error, ResponseError) and not is_elsewhere(error):
                    raise
                if isinstance(error, REFUSED) or time.monotonic() > end:
                    raise explain(error) from error
            time.sleep(RETRY_PAUSE_S)

    async def _asked(self, key: str, commands: tuple[Command, ...], most: int) -> list[Any]:
        try:
            async with asyncio.timeout(self._reply_timeout_s):
                if self._replies is None or not self._has(key) or self._sent not in ((), commands):
                    await self._connect(key)
                if self._sent != commands:
                    await self._send(commands)
                self._sent = ()
                return await self._received(len(commands), most)
        except TimeoutError as error:
            if self._replies is not None and self._replies.is_amid:
                raise Broken("a reply was not complete in time") from error
            raise

    def _has(self, key: str) -> bool:
        """Return whether the connected server holds the key, as far as is known."""
        return self._is_one_server or self._key == key

    async def _connect(self, key: str) -> None:
        if self._replies is not None:
            connection, self._replies = self._replies.connection, None
            await drop(connection)
        self._sent = ()
        self._replies, self._key = Replies(await self._connector.connect(key)), key

    async def _send(self, commands: tuple[Command, ...]) -> None:
        assert self._replies is not None
        connection = self._replies.connection
        async with asyncio.timeout(self._reply_timeout_s):
            await connection.send_packed_command(connection.pack_commands(commands), check_health=False)

    async def _received(self, number: int, most: int) -> list[Any]:
        assert self._replies is not None
        before = self._replies.octets
        found = [await self._replies.next(most)]
        self.octets = self._replies.octets - before
        found += [await self._replies.next(most) for _ in range(number - 1)]
        if isinstance(found[0], Exception):
            raise found[0]
        return found

    def _forget(self) -> None:
        self._sent = ()
        if self._replies is not None:
            connection, self._replies = self._replies.connection, None
            self._run(drop(connection))
