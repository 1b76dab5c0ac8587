"""A receiving MCA that reports what it receives and sends the answers of a test."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TypeVar

from protos.rqp_mca import (
    AvailableConfirm,
    AvailableRequest,
    Confirm,
    Data,
    DataConfirm,
    Limits,
    MessageType,
    Profile,
    QueueConfirm,
    QueueRequest,
    ReceiverConnection,
    Request,
    encode_message,
)
from services.kit.net.sockets import reset_on_close
from services.store.model.peer import PeerSpec
from tests.live import PATIENCE_S

EventT = TypeVar("EventT", AvailableRequest, QueueRequest, Data)


class Call:
    """One connection to the peer."""

    def __init__(self, peer: McaPeer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.peer = peer
        self.parser = ReceiverConnection(Limits())
        self.is_over = asyncio.Event()
        self._writer = writer
        self._reader = reader
        self._events: deque[Request] = deque()
        self._some = asyncio.Event()
        self._task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while data := await self._reader.read(1 << 16):
                for event in self.parser.receive(data, loop.time()):
                    self.put(event)
        except OSError:
            pass
        self.is_over.set()
        self._some.set()

    def put(self, event: Request) -> None:
        """Add received runs one by one: their boundaries are not the sender's choice."""
        if isinstance(event, Data):
            self._events.extend(Data(event.queue_id, event.kind, [record]) for record in event.records)
        else:
            self._events.append(event)
        self._some.set()

    async def has_something(self) -> bool:
        """Wait for the next message; return False if the connection ends."""
        async with asyncio.timeout(PATIENCE_S):
            while not self._events and not self.is_over.is_set():
                self._some.clear()
                await self._some.wait()
        return bool(self._events)

    async def next(self, kind: type[EventT]) -> EventT:
        """Return the next message, which must be of that type."""
        async with asyncio.timeout(PATIENCE_S):
            while not self._events:
                assert not self.is_over.is_set(), f"the connection ended, a {kind.__name__} was awaited"
                self._some.clear()
                await self._some.wait()
        event = self._events.popleft()
        assert isinstance(event, kind), f"{event} instead of a {kind.__name__}"
        return event

    async def body(self, kind: MessageType = MessageType.RELIABLE) -> bytes:
        """Return the body of the next message."""
        event = await self.next(Data)
        assert event.kind is kind
        return event.records[0][4:]

    async def bodies(self, number: int, kind: MessageType = MessageType.RELIABLE) -> list[bytes]:
        return [await self.body(kind) for _ in range(number)]

    @property
    def waiting(self) -> int:
        """Return unread messages."""
        return len(self._events)

    def say(self, confirm: Confirm) -> None:
        profile = self.parser.profile
        assert profile is not None
        self._writer.write(encode_message(profile, confirm))

    def say_octets(self, octets: bytes) -> None:
        self._writer.write(octets)

    def confirm(self, count: int = 1) -> None:
        self.say(DataConfirm(count))

    async def ended(self) -> None:
        """Wait until the sender closes the connection."""
        async with asyncio.timeout(PATIENCE_S):
            await self.is_over.wait()

    async def stop_reading(self) -> None:
        """Stop reading: data waits in the buffers, then at the sender."""
        self._task.cancel()
        await asyncio.wait((self._task,))

    async def rest(self) -> int:
        """Return how many octets arrive after `stop_reading` until the connection ends, by FIN or reset."""
        count = 0
        async with asyncio.timeout(PATIENCE_S):
            with suppress(OSError):
                while data := await self._reader.read(1 << 20):
                    count += len(data)
        return count

    def close(self) -> None:
        self._writer.close()

    def reset(self) -> None:
        if not self._writer.is_closing():
            reset_on_close(self._writer.get_extra_info("socket"))
            self._writer.transport.abort()


class McaPeer:
    """`async with` listens; `call` is the next connection."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self.host = host
        self.port = port
        self.calls: list[Call] = []
        self._new: asyncio.Queue[Call] = asyncio.Queue()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> McaPeer:
        await self.listen()
        return self

    async def listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, self.host, self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def __aexit__(self, *_: object) -> None:
        self.die()

    def die(self) -> None:
        """Stop listening and reset all connections."""
        assert self._server is not None
        self._server.close()
        for call in self.calls:
            call.reset()

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.calls.append(Call(self, reader, writer))
        self._new.put_nowait(self.calls[-1])

    async def call(self) -> Call:
        async with asyncio.timeout(PATIENCE_S):
            return await self._new.get()

    async def forget(self) -> None:
        """Forget earlier connections: `call` returns later ones only."""
        while self._new.qsize():
            await self._new.get_nowait().ended()

    async def asked(self, queue_id: int = 7) -> Call:
        """Wait for a connection with a question about the queue, which is still unanswered."""
        call = await self.call()
        assert await call.next(AvailableRequest) == AvailableRequest(queue_id)
        return call

    async def requested(self, queue_id: int = 7) -> Call:
        """Confirm the availability and wait for the request."""
        call = await self.asked(queue_id)
        call.say(AvailableConfirm(queue_id))
        assert await call.next(QueueRequest) == QueueRequest(queue_id)
        return call

    async def reserved(self, queue_id: int = 7) -> Call:
        """Reserve the queue for the sender."""
        call = await self.requested(queue_id)
        call.say(QueueConfirm(queue_id))
        return call


def peer_settings(*peers: McaPeer, window: int = 1, profile: Profile = Profile.PACKED) -> dict[str, object]:
    """Return peers as under `mca.peers`: p0, p1, ..."""
    return {
        f"p{number}": {"addresses": [peer.address], "window": window, "profile": profile.value}
        for number, peer in enumerate(peers)
    }


def registered(*addresses: str, **spec: object) -> PeerSpec:
    """Return the peer as a document for the store."""
    return PeerSpec.model_validate({"protocol": "rqp-mca", "addresses": list(addresses), **spec})


async def take_one(call: Call, body: bytes) -> None:
    """Receive one message and confirm it."""
    assert await call.body() == body
    call.confirm()
