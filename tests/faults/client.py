"""A TMQ client that records its requests and their answers."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time

from protos import tmq
from protos.tmq import Dialect, Operation
from tests.faults.history import Connection, Ended, Request

CONNECT_S = 5.0
ANSWER_S = 60.0  # stopped processes resume within seconds; a longer wait is a fault of the server
CLOSE_S = 15.0  # the server answers FIN by FIN after `eof_grace_s`, once the edge's process runs
NO_LINGER = struct.pack("ii", 1, 0)  # close() sends RST


class Gone(Exception):
    """The connection ended before every answer arrived."""


class Misbehaved(Exception):
    """The server violated the protocol."""


class Client:
    """One connection. It records requests before sending them and answers after reading them."""

    def __init__(
        self, record: Connection, dialect: Dialect, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.record = record
        self._dialect = dialect
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, record: Connection, port: int, dialect: Dialect) -> Client:
        """Connect to a port of an edge. Raise Gone if that fails."""
        try:
            async with asyncio.timeout(CONNECT_S):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except (OSError, TimeoutError) as error:
            record.end(Ended.BROKEN)
            raise Gone from error
        return cls(record, dialect, reader, writer)

    async def open(self, *queues: str) -> bool:
        """Open the queues; return False if one could not be opened, e.g. while the store is unavailable."""
        opened = [Request(Operation.OPEN, queue) for queue in queues]
        await self.ask(*opened)
        return all(request.ok for request in opened)

    async def ask(self, *requests: Request) -> None:
        """Send all requests at once, then read their answers in order (tmq.md 1.2). Raise Gone or Misbehaved."""
        self.send(*requests)
        try:
            async with asyncio.timeout(ANSWER_S):
                await self._writer.drain()
                for request in requests:
                    await self._answer(request)
        except (OSError, asyncio.IncompleteReadError) as error:
            self.abandon(Ended.BROKEN)
            raise Gone from error
        except TimeoutError as error:
            self.abandon(Ended.RESET)
            raise Misbehaved(f"{self.record.actor}: no answer for {ANSWER_S:g} s") from error
        except ValueError as error:
            raise Misbehaved(f"{self.record.actor}: {error}") from error

    def send(self, *requests: Request) -> None:
        """Send requests without reading answers. Raise Gone, with nothing sent, if the connection is known broken."""
        # asyncio's transports ignore a write after close, uvloop's raise RuntimeError
        if self._writer.transport.is_closing():
            self.abandon(Ended.BROKEN)
            raise Gone
        self.record.requests += requests
        data = b"".join(self._encode(request) for request in requests)
        now = time.monotonic()
        for request in requests:
            request.sent = now
        self._writer.write(data)

    def _encode(self, request: Request) -> bytes:
        name = request.queue.encode()
        match request.operation:
            case Operation.OPEN:
                return tmq.encode_open(name)
            case Operation.ENQ:
                return tmq.encode_enq(tmq.mqid_of(name), request.body)
            case Operation.DNQ:
                return tmq.encode_dnq(tmq.mqid_of(name))
            case Operation.SELECT:
                return tmq.encode_select(tmq.mqid_of(name))
            case Operation.TS:
                return tmq.encode_ts(self._dialect)
            case Operation.TE:
                return tmq.encode_te(self._dialect)
            case Operation.TA:
                return tmq.encode_ta(self._dialect)
        raise AssertionError(request.operation)

    async def _answer(self, request: Request) -> None:
        reply = await self._reader.readexactly(tmq.reply_bytes(self._dialect, request.operation))
        match request.operation:
            case Operation.OPEN:
                request.ok = tmq.parse_mqid(reply) == tmq.mqid_of(request.queue.encode())
            case Operation.DNQ:
                length = tmq.parse_length(reply)
                if length is not None:
                    request.body = await self._reader.readexactly(length)
                    request.ok = True
            case Operation.SELECT:
                request.ok = tmq.parse_count(self._dialect, reply) != tmq.UNUSABLE
            case _:
                request.ok = tmq.parse_status(self._dialect, request.operation, reply)
        request.answered = time.monotonic()

    # ends

    async def finish(self) -> None:
        """Send FIN, which settles what has been read (tmq.md 6.1). Call it only when no answer is outstanding."""
        try:
            self._writer.write_eof()
            async with asyncio.timeout(CLOSE_S):
                rest = await self._reader.read()
        except (OSError, RuntimeError, TimeoutError):
            self.abandon(Ended.HALF)
            return
        if rest:
            raise Misbehaved(f"{self.record.actor}: nothing was owed, but {rest[:80]!r} came")
        self.abandon(Ended.FIN)

    def leave(self) -> None:
        """Close at once: the kernel sends FIN now and RST for data that arrives later."""
        self.record.end(Ended.LEFT)
        self._writer.close()

    def reset(self) -> None:
        self.abandon(Ended.RESET)

    def drop(self) -> None:
        """Reset the connection if it is still open, so that no socket leaks."""
        if self.record.ended is Ended.OPEN:
            self.reset()

    def abandon(self, how: Ended) -> None:
        self.record.end(how)
        sock = self._writer.get_extra_info("socket")
        if sock is not None:  # None: already closed
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        self._writer.transport.abort()
