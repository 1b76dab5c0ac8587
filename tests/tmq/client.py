"""Provide a TMQ client that sends single operations as octets."""

from __future__ import annotations

import asyncio
import socket
import ssl

from protos import tmq
from protos.tmq import Dialect, Operation
from tests.plain_client import PATIENCE_S, PlainClient, answer_or_none, connected

__all__ = ["PATIENCE_S", "Client", "answer_or_none"]


class Client(PlainClient):
    """One connection. Methods named after an operation send a request and return its reply."""

    def __init__(self, sock: socket.socket, dialect: Dialect) -> None:
        super().__init__(sock)
        self.dialect = dialect

    @classmethod
    async def connect(
        cls, place: tuple[str, int], dialect: Dialect = Dialect.DOCUMENT, receive_buffer: int = 0
    ) -> Client:
        """Connect; `receive_buffer` is in bytes, for a client that does not read, or 0 for the system's default."""
        return cls(await connected(place, receive_buffer), dialect)

    async def ask(self, operation: Operation, request: bytes) -> bytes:
        """Return the reply to a request, without a DNQ's body."""
        await self.send(request)
        return await self.read(tmq.reply_bytes(self.dialect, operation))

    async def _status(self, operation: Operation, request: bytes) -> bool:
        return tmq.parse_status(self.dialect, operation, await self.ask(operation, request))

    async def create(self, name: bytes) -> bool:
        return await self._status(Operation.CREATE, tmq.encode_create(name))

    async def delete(self, name: bytes) -> bool:
        return await self._status(Operation.DELETE, tmq.encode_delete(name))

    async def open(self, name: bytes) -> bytes | None:
        """Return the MQID, or None for nil."""
        return tmq.parse_mqid(await self.ask(Operation.OPEN, tmq.encode_open(name)))

    async def queue(self, name: bytes) -> bytes:
        """Create a queue if it does not exist, and open it."""
        await self.create(name)
        mqid = await self.open(name)
        assert mqid == tmq.mqid_of(name)
        return mqid

    async def close_queue(self, mqid: bytes) -> bool:
        return await self._status(Operation.CLOSE, tmq.encode_close(mqid))

    async def enq(self, mqid: bytes, body: bytes) -> bool:
        return await self._status(Operation.ENQ, tmq.encode_enq(mqid, body))

    async def put(self, mqid: bytes, *bodies: bytes) -> None:
        """Send ENQs ahead, and check that all succeed."""
        await self.send(*(tmq.encode_enq(mqid, body) for body in bodies))
        done = tmq.encode_status(self.dialect, Operation.ENQ, True)
        assert await self.read(len(bodies)) == done * len(bodies)

    async def dnq(self, mqid: bytes) -> bytes | None:
        """Return a body, or None if there is no message."""
        await self.send(tmq.encode_dnq(mqid))
        return await self.message()

    async def message(self) -> bytes | None:
        """Return the reply to one DNQ."""
        size = tmq.parse_length(await self.read(4))
        return None if size is None else await self.read(size)

    async def messages(self, mqid: bytes, count: int) -> list[bytes | None]:
        """Send DNQs ahead, and return their replies."""
        await self.send(tmq.encode_dnq(mqid) * count)
        return [await self.message() for _ in range(count)]

    async def drain(self, mqid: bytes) -> list[bytes]:
        """Take all messages of a queue, one at a time."""
        found = []
        while (body := await self.dnq(mqid)) is not None:
            found.append(body)
        return found

    async def select(self, mqid: bytes) -> int:
        return tmq.parse_count(self.dialect, await self.ask(Operation.SELECT, tmq.encode_select(mqid)))

    async def ts(self) -> bool:
        return await self._status(Operation.TS, tmq.encode_ts(self.dialect))

    async def te(self) -> bool:
        return await self._status(Operation.TE, tmq.encode_te(self.dialect))

    async def ta(self) -> bool:
        return await self._status(Operation.TA, tmq.encode_ta(self.dialect))


class SecureClient(Client):
    """A TMQ client over TLS."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, dialect: Dialect) -> None:
        super().__init__(writer.get_extra_info("socket"), dialect)
        self._reader, self._writer = reader, writer

    @classmethod
    async def reach(cls, place: tuple[str, int], context: ssl.SSLContext) -> SecureClient:
        streams = await asyncio.open_connection(*place, ssl=context, server_hostname="localhost")
        return cls(*streams, Dialect.DOCUMENT)

    async def send(self, *data: bytes) -> None:
        async with asyncio.timeout(PATIENCE_S):
            self._writer.write(b"".join(data))
            await self._writer.drain()

    async def read(self, size: int) -> bytes:
        async with asyncio.timeout(PATIENCE_S):
            return await self._reader.readexactly(size)

    def close(self) -> None:
        self._writer.close()
