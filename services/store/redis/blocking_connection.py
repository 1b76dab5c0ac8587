"""One connection to whoever holds a key, for somebody who has no loop of his own and may simply ask again."""

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
REFUSED = (AuthenticationError, AuthorizationError)  # to be asked again is of no use

Command = tuple[Any, ...]


class Broken(ConnectionError):
    """A reply did not come whole, or had more octets than whoever asked could take.

    Servers close connections that would have to take more than they let them (client-output-buffer-limit).
    """


class Replies:
    """What comes on a connection, octets as they came."""

    def __init__(self, connection: AbstractConnection) -> None:
        self.connection = connection
        self.is_amid = False  # a reply has begun to come
        self.octets = 0  # that have come
        self._parser = hiredis.Reader(
            protocolError=InvalidResponse, replyError=BaseParser.parse_error, notEnoughData=NOT_YET
        )

    async def next(self, most: int) -> Any:
        """A refusal is a reply, too: those behind it are still to be read. Raises Broken."""
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


class Line:
    """Asks again, on a new connection and wherever the key is then, for `patience_s`; then StoreUnavailable.

    What the store would refuse again (a wrong password, a right that is missing) is said at once.
    """

    def __init__(self, url: str, reply_timeout_s: float, patience_s: float) -> None:
        """Raises ValueError for a URL that is none."""
        self._connector = Connector(url, reply_timeout_s)
        self._reply_timeout_s = reply_timeout_s
        self._patience_s = patience_s
        self._runner = asyncio.Runner()
        # without the Runner's own handling of signals, each time anew
        self._run = self._runner.get_loop().run_until_complete
        self._is_one_server = self._connector.url.mode != "cluster"
        self.octets = 0  # of the last answer's first reply; what came with the one before is that one's
        self._replies: Replies | None = None
        self._key = ""
        self._sent: tuple[Command, ...] = ()  # ahead, their replies not yet taken

    def close(self) -> None:
        self._forget()
        self._runner.close()

    def send(self, *commands: Command) -> None:
        """Ahead, on the connection there is: who asks the same then finds the replies on their way."""
        try:
            self._run(self._send(commands))
        except DISCONNECTED:
            self._forget()
        else:
            self._sent = commands

    def ask(self, key: str, *commands: Command, most: int = NO_BOUND) -> list[Any]:
        """A reply for each; a refusal of a later one is its reply.

        most: octets of a reply. Raises StoreUnavailable, ResponseError for a refusal of the first one; with a bound,
        Broken where a reply did not come whole, which may be for its size.
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
                raise Broken("a reply did not come to its end") from error
            raise

    def _has(self, key: str) -> bool:
        """Whether the server at the other end is the one that has it, as far as is known."""
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
