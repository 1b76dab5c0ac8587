"""A client of the ring's client port: each operation as the octets that original clients send."""

from __future__ import annotations

from typing import NamedTuple

from protos.ring import (
    HEAD_BYTES,
    Create,
    Destroy,
    Operation,
    Pull,
    Push,
    ReplyHead,
    echo_of,
    encode_record,
    encode_request,
    parse_reply,
)
from tests.plain_client import PlainClient, connected

ME = b"till 3"  # sender_name
OK, ERROR = Operation.OK, Operation.ERROR


class Reply(NamedTuple):
    """A reply: OK with a message, or ERROR with its text."""

    operation: Operation
    message: bytes


class Refused(Exception):
    """An ERROR reply; the exception's message is the reply's text."""


def create(queue: bytes, sender: bytes = ME) -> bytes:
    return encode_request(Create(echo_of(sender, queue), queue))


def destroy(queue: bytes, sender: bytes = ME) -> bytes:
    return encode_request(Destroy(echo_of(sender, queue), queue))


def push(queue: bytes, *bodies: bytes, sender: bytes = ME) -> bytes:
    """Return the octets of one push request per body."""
    return encode_request(Push(echo_of(sender, queue), queue, [encode_record(body) for body in bodies]))


def pull(queue: bytes, count: int = 1, sender: bytes = ME) -> bytes:
    return encode_request(Pull(echo_of(sender, queue), queue, count))


class Client(PlainClient):
    """One client connection. Methods named after an operation send it and wait; an ERROR reply raises Refused."""

    @classmethod
    async def connect(cls, place: tuple[str, int], receive_buffer: int = 0) -> Client:
        """Connect. `receive_buffer`: bytes, for a client that does not read; 0 uses the system's default."""
        return cls(await connected(place, receive_buffer))

    async def head(self, queue: bytes, sender: bytes = ME) -> ReplyHead:
        """Read the head of the next reply, which must repeat these two fields octet by octet (5.2)."""
        head = await self.read(HEAD_BYTES)
        assert head[4:-4] == echo_of(sender, queue)
        return parse_reply(head)

    async def reply(self, queue: bytes, sender: bytes = ME) -> Reply:
        head = await self.head(queue, sender)
        return Reply(head.operation, await self.read(head.size))

    async def replies(self, queue: bytes, count: int) -> list[Reply]:
        return [await self.reply(queue) for _ in range(count)]

    async def ok(self, queue: bytes) -> bytes:
        """Return the message of the next reply. Raises Refused."""
        reply = await self.reply(queue)
        if reply.operation is not OK:
            raise Refused(reply.message.decode())
        return reply.message

    async def create(self, queue: bytes) -> None:
        await self.send(create(queue))
        assert await self.ok(queue) == b""

    async def destroy(self, queue: bytes) -> None:
        await self.send(destroy(queue))
        assert await self.ok(queue) == b""

    async def push(self, queue: bytes, *bodies: bytes) -> None:
        """Send all pushes ahead; check that each is answered OK."""
        await self.send(push(queue, *bodies))
        for _ in bodies:
            assert await self.ok(queue) == b""

    async def pull(self, queue: bytes) -> bytes | None:
        """Return a message, or None if the queue is empty. Raises Refused for anything else."""
        await self.send(pull(queue))
        return await self.message(queue)

    async def message(self, queue: bytes) -> bytes | None:
        """Pull one message."""
        try:
            return await self.ok(queue)
        except Refused as refused:
            if str(refused) == "empty":
                return None
            raise

    async def messages(self, queue: bytes, count: int) -> list[bytes | None]:
        """Pull messages with requests sent ahead."""
        await self.send(pull(queue, count))
        return [await self.message(queue) for _ in range(count)]

    async def drain(self, queue: bytes) -> list[bytes]:
        """Take all messages, one at a time."""
        found = []
        while (body := await self.pull(queue)) is not None:
            found.append(body)
        return found
