"""A TMQ client that writes down what it asks and what it is answered."""

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
ANSWER_S = 60.0  # stopped processes go on after a few seconds; longer than this is a fault of the server's
CLOSE_S = 15.0  # a FIN is answered by a FIN: after `eof_grace_s`, and once the edge's process runs
NO_LINGER = struct.pack("ii", 1, 0)  # close() resets


class Gone(Exception):
    """the connection ended before every answer had come"""


class Misbehaved(Exception):
    """the server did what no server of this protocol does"""


class Client:
    """One connection. Requests are recorded before they are sent, answers when they have been read."""

    def __init__(
        self, record: Connection, dialect: Dialect, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.record = record
        self._dialect = dialect
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, record: Connection, port: int, dialect: Dialect) -> Client:
        """Raises Gone."""
        try:
            async with asyncio.timeout(CONNECT_S):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except (OSError, TimeoutError) as error:
            record.end(Ended.BROKEN)
            raise Gone from error
        return cls(record, dialect, reader, writer)

    async def open(self, *queues: str) -> bool:
        """False if one of them could not be opened, as when the store is away."""
        opened = [Request(Operation.OPEN, queue) for queue in queues]
        await self.ask(*opened)
        return all(request.ok for request in opened)

    async def ask(self, *requests: Request) -> None:
        """Sends all at once, then reads their answers in order (tmq.md 1.2). Raises Gone, Misbehaved."""
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
        """Raises Gone, if the connection is known to be broken: then nothing was sent."""
        # asyncio's transports say nothing of a write that comes too late, uvloop's raise RuntimeError
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
        """FIN: what has been read is settled (tmq.md 6.1). Only when nothing is owed."""
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
        """close(), whatever is still to come: FIN now, RST for what comes later."""
        self.record.end(Ended.LEFT)
        self._writer.close()

    def reset(self) -> None:
        self.abandon(Ended.RESET)

    def drop(self) -> None:
        """Whoever gives it up in the middle of something leaves no socket behind."""
        if self.record.ended is Ended.OPEN:
            self.reset()

    def abandon(self, how: Ended) -> None:
        self.record.end(how)
        sock = self._writer.get_extra_info("socket")
        if sock is not None:  # else it is closed already
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        self._writer.transport.abort()
