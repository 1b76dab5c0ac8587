"""A TMQ client that does exactly as it is told: it can stop reading, cut a request anywhere, end with FIN or reset."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable
from types import TracebackType
from typing import TypeVar

from protos import tmq
from protos.tmq import Dialect, Operation

PATIENCE_S = 20.0  # the longest wait for something that must happen; machines are shared
CHUNK = 1 << 18
T = TypeVar("T")


class Client:
    """One connection. Methods named after an operation ask and wait for the answer."""

    def __init__(self, sock: socket.socket, dialect: Dialect) -> None:
        self.sock = sock
        self.dialect = dialect
        self.address = sock.getsockname()
        self._loop = asyncio.get_running_loop()
        self._read = bytearray()

    @classmethod
    async def connect(
        cls, place: tuple[str, int], dialect: Dialect = Dialect.DOCUMENT, receive_buffer: int = 0
    ) -> Client:
        """`receive_buffer`: bytes, for a client that will not read; 0 for the system's own choice."""
        sock = socket.socket()
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        try:
            await asyncio.get_running_loop().sock_connect(sock, place)
        except BaseException:
            sock.close()
            raise
        return cls(sock, dialect)

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # bytes

    async def send(self, *data: bytes) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await self._loop.sock_sendall(self.sock, b"".join(data))

    async def read(self, size: int) -> bytes:
        """Exactly so many bytes. Raises EOFError at the server's FIN, ConnectionResetError."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self._read) < size:
                if not (chunk := await self._loop.sock_recv(self.sock, CHUNK)):
                    raise EOFError(f"FIN after {bytes(self._read[:100])!r}, {size} bytes were expected")
                self._read += chunk
        data = bytes(self._read[:size])
        del self._read[:size]
        return data

    async def rest(self) -> bytes:
        """Everything until the server's FIN. Raises ConnectionResetError, TimeoutError."""
        async with asyncio.timeout(PATIENCE_S):
            while chunk := await self._loop.sock_recv(self.sock, CHUNK):
                self._read += chunk
        data = bytes(self._read)
        self._read.clear()
        return data

    async def ended(self) -> str:
        """How the server ended it, "fin" or "reset"; nothing more was answered."""
        try:
            rest = await self.rest()
        except ConnectionResetError:
            return "reset"
        assert rest == b"", f"unexpected answer {rest!r}"
        return "fin"

    async def is_silent(self, seconds: float) -> bool:
        """No byte and no end for so long."""
        if self._read:
            return False
        try:
            async with asyncio.timeout(seconds):
                self._read += await self._loop.sock_recv(self.sock, CHUNK)
        except TimeoutError:
            return True
        return False

    async def is_untouched(self, seconds: float) -> bool:
        """It reads nothing for so long, and the server does not end it."""
        await asyncio.sleep(seconds)
        try:
            return bool(self.sock.recv(1, socket.MSG_PEEK))
        except ConnectionResetError:
            return False

    def has_unread(self) -> bool:
        """An answer has arrived, and stays where it is."""
        try:
            return bool(self.sock.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False

    def fin(self) -> None:
        """Half-close: no more requests, answers are still read."""
        self.sock.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        if self.sock.fileno() >= 0:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.sock.close()

    def close(self) -> None:
        """As a program that ends does: FIN, or a reset if answers are unread."""
        self.sock.close()

    # operations

    async def ask(self, operation: Operation, request: bytes) -> bytes:
        """The reply, without a DNQ's body."""
        await self.send(request)
        return await self.read(tmq.reply_bytes(self.dialect, operation))

    async def _status(self, operation: Operation, request: bytes) -> bool:
        return tmq.parse_status(self.dialect, operation, await self.ask(operation, request))

    async def create(self, name: bytes) -> bool:
        return await self._status(Operation.CREATE, tmq.encode_create(name))

    async def delete(self, name: bytes) -> bool:
        return await self._status(Operation.DELETE, tmq.encode_delete(name))

    async def open(self, name: bytes) -> bytes | None:
        """The MQID, or None for nil."""
        return tmq.parse_mqid(await self.ask(Operation.OPEN, tmq.encode_open(name)))

    async def queue(self, name: bytes) -> bytes:
        """Makes it if need be, and opens it."""
        await self.create(name)
        mqid = await self.open(name)
        assert mqid == tmq.mqid_of(name)
        return mqid

    async def close_queue(self, mqid: bytes) -> bool:
        return await self._status(Operation.CLOSE, tmq.encode_close(mqid))

    async def enq(self, mqid: bytes, body: bytes) -> bool:
        return await self._status(Operation.ENQ, tmq.encode_enq(mqid, body))

    async def put(self, mqid: bytes, *bodies: bytes) -> None:
        """ENQs sent ahead, all of which must be done."""
        await self.send(*(tmq.encode_enq(mqid, body) for body in bodies))
        done = tmq.encode_status(self.dialect, Operation.ENQ, True)
        assert await self.read(len(bodies)) == done * len(bodies)

    async def dnq(self, mqid: bytes) -> bytes | None:
        """A body, or None if there is no message."""
        await self.send(tmq.encode_dnq(mqid))
        return await self.message()

    async def message(self) -> bytes | None:
        """The reply to one DNQ."""
        size = tmq.parse_length(await self.read(4))
        return None if size is None else await self.read(size)

    async def messages(self, mqid: bytes, count: int) -> list[bytes | None]:
        """DNQs sent ahead."""
        await self.send(tmq.encode_dnq(mqid) * count)
        return [await self.message() for _ in range(count)]

    async def drain(self, mqid: bytes) -> list[bytes]:
        """Takes all that is there, one at a time."""
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


async def told(answer: Awaitable[T]) -> T | None:
    """The answer, or None if the connection was closed unanswered."""
    try:
        return await answer
    except (EOFError, ConnectionResetError):
        return None
