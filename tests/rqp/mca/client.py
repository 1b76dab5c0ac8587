"""A sending MCA that sends any octets and reads the answers."""

from __future__ import annotations

import asyncio

from protos.rqp_mca import (
    MessageType,
    Profile,
    encode_available_confirm,
    encode_available_request,
    encode_data,
    encode_data_confirm,
    encode_queue_confirm,
    encode_queue_request,
)
from services.kit.net.sockets import reset_on_close
from tests.live import PATIENCE_S, Place

RELIABLE, UNRELIABLE = MessageType


class Client:
    """One connection, in one profile. Every wait fails after PATIENCE_S."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, profile: Profile) -> None:
        self.reader = reader
        self.writer = writer
        self.profile = profile
        self.confirm = encode_data_confirm(profile)

    @classmethod
    async def connect(cls, place: Place, profile: Profile = Profile.PACKED) -> Client:
        return cls(*await asyncio.open_connection(*place), profile)

    async def send(self, *messages: bytes) -> None:
        async with asyncio.timeout(PATIENCE_S):
            self.writer.write(b"".join(messages))
            await self.writer.drain()

    async def read(self, size: int) -> bytes:
        """Read a message; raise IncompleteReadError if the connection ends before."""
        async with asyncio.timeout(PATIENCE_S):
            return await self.reader.readexactly(size)

    async def rest(self) -> bytes:
        """Return everything up to the receiver's FIN."""
        async with asyncio.timeout(PATIENCE_S):
            return await self.reader.read()

    # messages

    def data(self, queue_id: int, *bodies: bytes, kind: MessageType = RELIABLE) -> bytes:
        return b"".join(encode_data(self.profile, queue_id, kind, body) for body in bodies)

    async def put(self, queue_id: int, *bodies: bytes) -> None:
        """Put RELIABLE messages; check that all are confirmed."""
        await self.send(self.data(queue_id, *bodies))
        assert await self.read(len(bodies) * len(self.confirm)) == self.confirm * len(bodies)

    async def is_available(self, queue_id: int, other: int) -> bool:
        """Return whether `queue_id` is available. other: an available queue whose answer marks the end (1.3)."""
        await self.send(
            encode_available_request(self.profile, queue_id), encode_available_request(self.profile, other)
        )
        yes, end = (encode_available_confirm(self.profile, number) for number in (queue_id, other))
        first = await self.read(len(yes))
        if first == end:
            return False
        assert first == yes
        assert await self.read(len(end)) == end
        return True

    async def request(self, queue_id: int) -> None:
        """Request a queue; check that it is assigned to this connection."""
        await self.send(encode_queue_request(self.profile, queue_id))
        yours = encode_queue_confirm(self.profile, queue_id)
        assert await self.read(len(yours)) == yours

    async def is_assigned(self, queue_id: int, other: int) -> bool:
        """Return whether the queue is assigned; as `is_available`, for MSG_QUEUE_REQUEST."""
        await self.send(
            encode_queue_request(self.profile, queue_id), encode_available_request(self.profile, other)
        )
        yours = encode_queue_confirm(self.profile, queue_id)
        end = encode_available_confirm(self.profile, other)
        first = await self.read(len(yours))
        if first == end:
            return False
        assert first == yours
        assert await self.read(len(end)) == end
        return True

    # the end

    def fin(self) -> None:
        self.writer.write_eof()

    def reset(self) -> None:
        reset_on_close(self.writer.get_extra_info("socket"))
        self.writer.transport.abort()

    def close(self) -> None:
        self.writer.close()
